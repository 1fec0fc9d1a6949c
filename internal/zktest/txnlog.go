package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/internal/jute"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// Transaction is one entry of the log of transactions that a real server keeps.
type Transaction struct {
	Zxid    int64
	Session int64
	Xid     int32     // the request's number in its session
	Time    time.Time // by the leader's clock
	Type    int32     // as in the protocol; -10 and -11 for a session's begin and end
	Deleted []string  // the paths of deletes, also of deletes in a multi
}

const (
	// txnHeader is the length of a transaction's header: session, xid, zxid,
	// time and type.
	txnHeader = 8 + 4 + 8 + 8 + 4
	// longestTxn is far beyond what a server takes in one request.
	longestTxn = 64 << 20
)

// Transactions returns what the servers of the ensemble have carried out, in
// order. A server's log may lack what it learned by a snapshot; all together
// have everything.
func (e *Ens) Transactions() ([]Transaction, error) {
	all := map[int64]Transaction{}
	for _, s := range e.servers {
		own, err := s.transactions()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, own)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Transaction) int { return int(a.Zxid - b.Zxid) }), nil
}

// transactions returns what the server's logs have, by zxid.
func (s *Server) transactions() (map[int64]Transaction, error) {
	own := map[int64]Transaction{}
	logs, err := filepath.Glob(filepath.Join(s.DataDir(), "version-2", "log.*"))
	for _, name := range logs {
		if err := readTxnLog(name, func(t Transaction) { own[t.Zxid] = t }); err != nil {
			return nil, fmt.Errorf("zktest: %s: %w", name, err)
		}
	}
	return own, err
}

// Lost says which servers lack transactions of all, the ensemble's, in their
// logs, and learned them by no snapshot. Such a server has lost what it had
// acknowledged: when it is started again, and leads, the others lose it, too.
func (e *Ens) Lost(all []Transaction) (lost []string, err error) {
	for i, s := range e.servers {
		own, err := s.transactions()
		if err != nil {
			return nil, err
		}
		names, err := filepath.Glob(filepath.Join(s.DataDir(), "version-2", "snapshot.*"))
		if err != nil {
			return nil, err
		}
		var snapshots []int64
		for _, name := range names {
			if zxid, err := strconv.ParseInt(filepath.Ext(name)[1:], 16, 64); err == nil {
				snapshots = append(snapshots, zxid)
			}
		}
		for _, hole := range holes(all, own, snapshots) {
			lost = append(lost, fmt.Sprintf("server %d lacks %d transactions from 0x%x on", i+1, len(hole), hole[0]))
		}
	}
	return lost, nil
}

// holes finds the transactions that a server's log lacks between two others of
// their epoch, unless a snapshot was made of just these. Between two epochs it
// may lack what the leader of the first had only proposed.
func holes(all []Transaction, own map[int64]Transaction, snapshots []int64) (found [][]int64) {
	var before int64
	var hole []int64
	for _, t := range all {
		if _, has := own[t.Zxid]; !has {
			hole = append(hole, t.Zxid)
			continue
		}
		learned := func(zxid int64) bool { return hole[len(hole)-1] <= zxid && zxid < t.Zxid }
		if len(hole) > 0 && before>>32 == t.Zxid>>32 && !slices.ContainsFunc(snapshots, learned) {
			found = append(found, hole)
		}
		before, hole = t.Zxid, nil
	}
	return found
}

// readTxnLog reads a log file: a header of 16 bytes, and for each transaction a
// checksum (8 bytes), a length (4 bytes), the transaction, and a closing byte.
// The rest of a file that was allocated beforehand is zero. The last entry may
// be cut off, if its server was killed.
func readTxnLog(name string, each func(Transaction)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	head := make([]byte, 16)
	if _, err := io.ReadFull(in, head); err != nil {
		return ignoreEnd(err)
	}
	if string(head[:4]) != "ZKLG" {
		return errors.New("this is no log of transactions")
	}
	var entry []byte
	for {
		var prefix [12]byte
		if _, err := io.ReadFull(in, prefix[:]); err != nil {
			return ignoreEnd(err)
		}
		n := int(binary.BigEndian.Uint32(prefix[8:]))
		if n == 0 {
			return nil
		}
		if n < txnHeader || n > longestTxn {
			return fmt.Errorf("a transaction of %d bytes", n)
		}
		entry = slices.Grow(entry[:0], n+1)[:n+1]
		if _, err := io.ReadFull(in, entry); err != nil {
			return ignoreEnd(err)
		}
		each(parseTxn(entry))
	}
}

func ignoreEnd(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

func parseTxn(b []byte) Transaction {
	d := jute.Decoder{Rest: b}
	t := Transaction{
		Session: d.Int64(), Xid: d.Int32(), Zxid: d.Int64(), Time: time.UnixMilli(d.Int64()), Type: d.Int32(),
	}
	switch t.Type {
	case proxy.OpDelete:
		t.Deleted = append(t.Deleted, d.String())
	case proxy.OpMulti: // a count, then for each part its type and itself
		for range d.Int32() {
			kind, part := d.Int32(), jute.Decoder{Rest: d.Buffer()}
			if kind == proxy.OpDelete {
				t.Deleted = append(t.Deleted, part.String())
			}
		}
	}
	return t
}
