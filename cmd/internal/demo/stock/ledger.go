package stock

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Sale is one unit handed over: the Number-th by that Seller. Token is the
// fencing token of the lock it was sold under.
type Sale struct {
	Seller int
	Number int
	Token  int64
}

// Ledger is the content of the file.
type Ledger struct {
	Left  int
	Sales []Sale
}

// ReadLedger reads the file at path.
func ReadLedger(path string) (Ledger, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Ledger{}, err
	}
	var l Ledger
	lines := bufio.NewScanner(bytes.NewReader(data))
	if !lines.Scan() {
		return Ledger{}, fmt.Errorf("%s: empty", path)
	}
	if _, err := fmt.Sscanf(lines.Text(), "left %d", &l.Left); err != nil {
		return Ledger{}, fmt.Errorf("%s: first line %q: %w", path, lines.Text(), err)
	}
	for lines.Scan() {
		var s Sale
		if err := s.parse(lines.Bytes()); err != nil {
			return Ledger{}, fmt.Errorf("%s: line %q: %w", path, lines.Text(), err)
		}
		l.Sales = append(l.Sales, s)
	}
	return l, lines.Err()
}

// Write replaces the file at path as a whole. It writes to scratch first, a
// file next to it that is the caller's own. It is not flushed to the disk: a
// killed process loses nothing by that, and the demonstration does not cut the
// power.
func (l Ledger) Write(path, scratch string) error {
	if err := os.WriteFile(scratch, l.format(), 0o600); err != nil {
		return err
	}
	return os.Rename(scratch, path)
}

func (l Ledger) format() []byte {
	out := fmt.Appendf(nil, "left %d\n", l.Left)
	for _, s := range l.Sales {
		out = strconv.AppendInt(append(out, "seller "...), int64(s.Seller), 10)
		out = strconv.AppendInt(append(out, " sale "...), int64(s.Number), 10)
		out = strconv.AppendInt(append(out, " token "...), s.Token, 10)
		out = append(out, '\n')
	}
	return out
}

func (s *Sale) parse(line []byte) error {
	fields := bytes.Fields(line)
	if len(fields) != 6 {
		return fmt.Errorf("%d fields instead of 6", len(fields))
	}
	var err error
	if s.Seller, err = strconv.Atoi(string(fields[1])); err != nil {
		return err
	}
	if s.Number, err = strconv.Atoi(string(fields[3])); err != nil {
		return err
	}
	s.Token, err = strconv.ParseInt(string(fields[5]), 10, 64)
	return err
}

// sold is the number of units handed over, by the file and by the sellers'
// reports, which are known.
func (l Ledger) sold(known []Sale) int {
	type key struct{ seller, number int }
	all := map[key]bool{}
	for _, s := range l.Sales {
		all[key{s.Seller, s.Number}] = true
	}
	for _, s := range known {
		all[key{s.Seller, s.Number}] = true
	}
	return len(all)
}

// growing reports whether each sale was made under a higher token than the one
// before.
func (l Ledger) growing() bool {
	for i := 1; i < len(l.Sales); i++ {
		if l.Sales[i].Token <= l.Sales[i-1].Token {
			return false
		}
	}
	return true
}
