package doublebarrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// content is what a member's node holds: a line with the owner, and if the
// member has finished or has brought anything, a line that says which, and what
// it has brought.
type content struct {
	owner    string
	finished bool
	data     []byte // nil: none
}

const (
	dataLine = "data"
	doneLine = "done"
)

func (c content) encode() []byte {
	lines := []string{c.owner, dataLine}
	if c.finished {
		lines[1] = doneLine
	}
	if c.data != nil {
		lines = append(lines, string(c.data))
	}
	return []byte(strings.Join(lines, "\n"))
}

// parse reads what encode wrote, also where another client has put a line
// before it, as a request to give up does.
func parse(data []byte) content {
	for from := string(data); ; {
		owner, rest, more := strings.Cut(from, "\n")
		switch word, brought, some := strings.Cut(rest, "\n"); {
		case word == dataLine, word == doneLine:
			c := content{owner: owner, finished: word == doneLine}
			if some {
				c.data = []byte(brought)
			}
			return c
		case !more || len(from) < len(data):
			return content{owner: string(data)}
		}
		from = rest
	}
}

// ParseOwner splits a member's data into its owner and whether it has finished
// and waits for the others.
func ParseOwner(data string) (owner string, finished bool) {
	c := parse([]byte(data))
	return c.owner, c.finished
}

// One node, the vector, holds what all members of a round have brought. Its
// name is one of these and the round's number.
const (
	dataOf    = "data-"
	resultsOf = "results-"
)

// IsVector reports whether the node of this name, below a barrier's path, has
// what members of a round have brought, or why one gave up.
func IsVector(name string) bool { return roundOf(name) > 0 }

// roundOf returns the round of a vector or reason, or 0 for other nodes.
func roundOf(name string) int64 {
	for _, of := range []string{dataOf, resultsOf, reasonOf} {
		if number, found := strings.CutPrefix(name, of); found {
			number, _, _ = strings.Cut(number, "-") // the index follows
			n, _ := strconv.ParseInt(number, 10, 64)
			return n
		}
	}
	return 0
}

func isOfRound(name string, rounds []round) bool {
	return slices.ContainsFunc(rounds, func(r round) bool { return r.Number == roundOf(name) })
}

func (b *Barrier) vector(r round, of string) string {
	return b.node(of + strconv.FormatInt(r.Number, 10))
}

// deleted returns the operations that delete the vectors of all rounds but
// those kept.
func (b *Barrier) deleted(there *listing, kept []round) (ops []coord.Op) {
	for _, name := range there.vectors {
		if !strings.HasPrefix(name, reasonOf) && !isOfRound(name, kept) {
			ops = append(ops, coord.DeleteOp(b.node(name), -1))
		}
	}
	return ops
}

// bytesPerLength is how many bytes a length takes in a vector.
const bytesPerLength = 8

// encodeVector writes a line of JSON with the lengths, -1 for none, and what
// was brought.
func encodeVector(v [][]byte) []byte {
	lengths := make([]int, len(v))
	for i, data := range v {
		if lengths[i] = len(data); data == nil {
			lengths[i] = -1
		}
	}
	head, _ := json.Marshal(lengths) // cannot fail: numbers
	return slices.Concat(head, []byte("\n"), slices.Concat(v...))
}

func decodeVector(data []byte, n int) ([][]byte, error) {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	var lengths []int
	if err := json.Unmarshal(head, &lengths); err != nil || len(lengths) != n {
		return nil, errNoVector
	}
	v := make([][]byte, n)
	for i, length := range lengths {
		switch {
		case length > len(rest):
			return nil, errNoVector
		case length >= 0:
			v[i], rest = rest[:length:length], rest[length:]
		}
	}
	return v, nil
}

var errNoVector = fmt.Errorf("%w: another client has changed what the members brought", ErrBroken)

// read reads a vector of a round of n members, of which the caller is one.
func (b *Barrier) read(ctx context.Context, r round, of string, n int) (v [][]byte, err error) {
	err = recipe.Retry(ctx, b.client, func(ctx context.Context) error {
		data, _, err := b.client.Get(ctx, b.vector(r, of))
		if errors.Is(err, coord.ErrNoNode) {
			return errNoVector
		}
		if err == nil {
			v, err = decodeVector(data, n)
		}
		return err
	})
	return v, err
}

// each reads the members' nodes, atOnce at a time, and calls see for each, with
// its content or the error. Calls of see may be concurrent.
func (b *Barrier) each(ctx context.Context, members []string, see func(index int, c content, err error)) {
	var reading sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, name := range members {
		places <- struct{}{}
		reading.Go(func() {
			data, _, err := b.client.Get(ctx, b.node(name))
			see(i, parse(data), err)
			<-places
		})
	}
	reading.Wait()
}

// gather reads what the members of a round have brought to it.
func (b *Barrier) gather(ctx context.Context, members []string) ([][]byte, error) {
	v, failures := make([][]byte, len(members)), make([]error, len(members))
	b.each(ctx, members, func(index int, c content, err error) { v[index], failures[index] = c.data, err })
	return v, recipe.JoinedWithin(ctx, failures...)
}

// admitShare rejects more than a member may bring.
func (b *Barrier) admitShare(data []byte) error {
	if len(data) > b.share {
		return fmt.Errorf("%w: %d bytes; each of %d members may bring %d", coord.ErrTooLarge, len(data), b.size, b.share)
	}
	return nil
}
