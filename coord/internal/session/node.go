package session

import (
	"context"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Txn carries out all the operations or none. When the ensemble refused it, the
// results say which operation failed.
func (s *Session) Txn(ctx context.Context, ops []wire.Op) ([]wire.Result, error) {
	results, err := roundTrip(ctx, s, wire.Request{Op: wire.OpMulti}, wire.Transaction(ops), func(d *wire.Decoder) []wire.Result { return d.Results(ops) })
	if at := Refused(results); at >= 0 {
		err = results[at].Err
	}
	return results, err
}

// Node is a node as it was read.
type Node struct {
	Exists bool
	Data   []byte
	Stat   wire.Stat
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return roundTrip(ctx, s, wire.Request{Op: wire.OpGetData}, wire.Reading(path, false), nodeOf)
}

func nodeOf(d *wire.Decoder) Node { return Node{true, d.Buffer(), d.Stat()} }

// Exists looks whether a node exists; it needs no permission to read it.
func (s *Session) Exists(ctx context.Context, path string) (Node, error) {
	node, err := roundTrip(ctx, s, wire.Request{Op: wire.OpExists}, wire.Reading(path, false), func(d *wire.Decoder) Node {
		return Node{true, nil, d.Stat()}
	})
	if err == wire.ErrNoNode {
		err = nil
	}
	return node, err
}

// Refused returns the index of the operation that the ensemble refused, or -1.
func Refused(replies []wire.Result) int {
	return slices.IndexFunc(replies, func(r wire.Result) bool { return r.Err != nil })
}
