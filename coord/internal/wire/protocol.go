package wire

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// OpCode is the kind of a request (ZooDefs.OpCode).
type OpCode int32

// The kinds of requests.
const (
	OpCreate          OpCode = 1
	OpDelete          OpCode = 2
	OpExists          OpCode = 3
	OpGetData         OpCode = 4
	OpSet             OpCode = 5
	OpGetChildren2    OpCode = 12
	OpCheck           OpCode = 13
	OpMulti           OpCode = 14
	OpCreateContainer OpCode = 19
	OpAuth            OpCode = 100
	OpClose           OpCode = -11

	opError OpCode = -1 // of a part of a transaction's reply
)

// The numbers of packets that are no requests of the usual kind.
const (
	xidNotification = -1
	xidPing         = -2
	xidAuth         = -4
	xidClose        = -15
	xidUrgent       = -16 // from there downwards: a busy server holds back what is above 0
)

const (
	lengthSize    = 4
	requestHeader = 8  // xid, op
	replyHeader   = 16 // xid, zxid, err
	statSize      = 68

	// A reply larger than this is no reply: the largest listing a server can
	// hold in memory is smaller. Handshakes have 37 bytes.
	maxFrame     = 256 << 20
	maxHandshake = 1 << 10
)

// isWrite reports whether a request is decided by the ensemble, not by the one
// server that received it.
func (op OpCode) isWrite() bool {
	switch op {
	case OpCreate, OpDelete, OpSet, OpMulti, OpCreateContainer:
		return true
	}
	return false
}

// committed reports whether the ensemble agreed on the answer to a write, a
// refusal included: not if the write was throttled, moved or expired, nor if
// one server refused it by itself, with zxid 0 (zookeeper.enableEagerACLCheck).
func committed(zxid int64, code int32) bool {
	return zxid > 0 && (code == 0 || code <= -101 && code >= -111)
}

// Stat is what ZooKeeper keeps about a node.
type Stat struct {
	Czxid, Mzxid, Pzxid int64
	Created, Modified   int64 // milliseconds since 1970
	Version             int32
	Cversion            int32
	Aversion            int32
	Owner               int64
	DataLength          int32
	Children            int32
}

// Op is a write, alone or in a transaction: one of [OpCreate], [OpSet],
// [OpDelete] and [OpCheck].
type Op struct {
	Kind    OpCode
	Path    string
	Data    []byte
	Version int32
	Flags   int32
	ACL     []zk.ACL
}

// Result is what one operation of a transaction did, or why not.
type Result struct {
	Path string
	Stat Stat
	Err  error
}

// Append appends the operation's fields.
func (op Op) Append(b []byte) []byte {
	b = appendString(b, op.Path)
	switch op.Kind {
	case OpCreate:
		b = appendInt32(appendBuffer(b, op.Data), int32(len(op.ACL)))
		for _, a := range op.ACL {
			b = appendString(appendString(appendInt32(b, a.Perms), a.Scheme), a.ID)
		}
		return appendInt32(b, op.Flags)
	case OpSet:
		b = appendBuffer(b, op.Data)
	}
	return appendInt32(b, op.Version)
}

// Transaction appends the fields of a transaction.
func Transaction(ops []Op) func(b []byte) []byte {
	return func(b []byte) []byte {
		for _, op := range ops {
			b = op.Append(appendMultiHeader(b, op.Kind, 0))
		}
		return appendMultiHeader(b, opError, 1)
	}
}

// appendMultiHeader appends what stands before an operation of a transaction,
// and at its end.
func appendMultiHeader(b []byte, op OpCode, done byte) []byte {
	return appendInt32(append(appendInt32(b, int32(op)), done), -1)
}

// Reading appends the fields of a request that reads.
func Reading(path string, watch bool) func(b []byte) []byte {
	return func(b []byte) []byte {
		if watch {
			return append(appendString(b, path), 1)
		}
		return append(appendString(b, path), 0)
	}
}

// Nowhere appends the fields of a request that reads nothing, in a packet of a
// size.
func Nowhere(size int) func(b []byte) []byte {
	return Reading("/"+strings.Repeat("x", size-requestHeader-lengthSize-len("/")-1), false)
}

// Credential appends the fields of a request that presents a credential.
func Credential(scheme string, credential []byte) func(b []byte) []byte {
	return func(b []byte) []byte {
		return appendString(appendString(appendInt32(b, 0), scheme), string(credential))
	}
}

// Nothing appends no fields, for a request that has none.
func Nothing(b []byte) []byte { return b }

func int32At(b []byte, at int) int32 {
	if len(b) < at+4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b[at:]))
}

func int64At(b []byte, at int) int64 {
	if len(b) < at+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[at:]))
}

func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendString(b []byte, s string) []byte {
	return append(appendInt32(b, int32(len(s))), s...)
}

func appendBuffer(b, data []byte) []byte {
	if data == nil {
		return appendInt32(b, -1)
	}
	return append(appendInt32(b, int32(len(data))), data...)
}

// withLength prefixes a frame with its length.
func withLength(body []byte) []byte {
	return append(appendInt32(nil, int32(len(body))), body...)
}

// Decoder takes a packet apart. A packet that is shorter than it must be, or
// holds what it must not, is malformed; all further values read from it are
// zero.
type Decoder struct {
	b         []byte
	malformed bool
	away      int32 // the code of a part on which the connection is given up, or 0
}

func (d *Decoder) fail() { d.b, d.malformed = nil, true }

func (d *Decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *Decoder) int32() int32   { return int32At(d.take(4), 0) }
func (d *Decoder) int64() int64   { return int64At(d.take(8), 0) }
func (d *Decoder) bool() bool     { return string(d.take(1)) == "\x01" }
func (d *Decoder) string() string { return string(d.take(int(d.int32()))) }

// Buffer reads data, or nil where there are none.
func (d *Decoder) Buffer() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	return append([]byte{}, d.take(int(n))...)
}

// Names reads a list of strings, which share their memory.
func (d *Decoder) Names() []string {
	n := int(d.int32())
	if n < 0 || n > len(d.b)/lengthSize {
		d.fail()
		return nil
	}
	all := string(d.b)
	names := make([]string, n)
	for i := range names {
		length := int(d.int32())
		begin := len(all) - len(d.b)
		names[i] = all[begin : begin+len(d.take(length))]
	}
	return names
}

// Stat reads what the servers keep about a node.
func (d *Decoder) Stat() Stat {
	b := d.take(statSize)
	return Stat{
		Czxid: int64At(b, 0), Mzxid: int64At(b, 8), Pzxid: int64At(b, 60),
		Created: int64At(b, 16), Modified: int64At(b, 24),
		Version: int32At(b, 32), Cversion: int32At(b, 36), Aversion: int32At(b, 40),
		Owner: int64At(b, 44), DataLength: int32At(b, 52), Children: int32At(b, 56),
	}
}

// Created reads the path of a node that was created at path; a sequence number
// may follow.
func (d *Decoder) Created(path string) string {
	made := d.string()
	if number, is := strings.CutPrefix(made, path); !is || strings.Contains(number, "/") {
		d.fail()
	}
	return made
}

// Results reads the results of a transaction's operations.
func (d *Decoder) Results(ops []Op) []Result {
	results := make([]Result, len(ops))
	for i, op := range ops {
		r := &results[i]
		switch kind, end := d.multiHeader(); {
		case end, kind != opError && kind != op.Kind:
			d.fail()
		case kind == opError:
			code := d.int32()
			if r.Err = errorOf(code); codes[code].away {
				d.away = code
			}
		case kind == OpCreate:
			r.Path = d.Created(op.Path)
		case kind == OpSet:
			r.Stat = d.Stat()
		}
	}
	if _, end := d.multiHeader(); !end {
		d.fail()
	}
	return results
}

func (d *Decoder) multiHeader() (op OpCode, end bool) {
	op, end = OpCode(d.int32()), d.bool()
	d.take(4) // an error code, which comes again behind the header
	return op, end
}

// Welcome is a server's reply to a handshake.
type Welcome struct {
	ID      int64 // of the session; 0 = the server has none
	Timeout time.Duration
	Passwd  []byte
}

func (d *Decoder) welcome() (w Welcome) {
	d.take(4) // the protocol's version
	w.Timeout = time.Duration(d.int32()) * time.Millisecond
	w.ID, w.Passwd = d.int64(), d.Buffer()
	return w
}
