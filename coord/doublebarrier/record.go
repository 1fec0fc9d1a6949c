package doublebarrier

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// record is the node ready, which holds what the members must agree on.
type record struct {
	client *coord.Client
	path   string
}

// snapshot is the record as it was read.
type snapshot struct {
	state
	stat coord.Stat
}

func snapshotOf(data []byte, stat coord.Stat, err error) (snapshot, error) {
	if err != nil {
		return snapshot{}, err
	}
	s, err := decode(data)
	return snapshot{s, stat}, err
}

// get reads the record and leaves no watch.
func (r record) get(ctx context.Context) (snapshot, error) {
	return snapshotOf(r.client.Get(ctx, r.path))
}

// watchOrMake reads the record for a look, and makes it when it is missing,
// with its directory.
func (r record) watchOrMake(v *coord.View, size int) (snapshot, error) {
	return snapshotOf(recipe.NewRecord(r.client, r.path).Look(v, first(size)))
}

// make makes the record, with its directory, unless another client has.
func (r record) make(ctx context.Context, size int) error {
	err := recipe.Retry(ctx, r.client,
		func(ctx context.Context) error { return r.client.Create(ctx, r.path, first(size)) })
	if errors.Is(err, coord.ErrNodeExists) {
		return nil
	}
	return err
}

// first is the record of a barrier that was never used. The numbers of members
// begin at 1: making the record counts in the directory, too.
func first(size int) []byte { return encode(state{Format: format, Size: size, round: round{Next: 1}}) }

// transaction is a client's or a hold's Txn.
type transaction = func(ctx context.Context, ops ...coord.Op) ([]coord.Result, error)

// write replaces the state that was read as from, along with more operations.
// It may be sent again: it takes effect once, since that changes the version.
// It fails with [coord.ErrBadVersion] if the record has changed since, and with
// [coord.ErrNoNode] if the record, or a node that another operation needs, is
// gone.
func (r record) write(ctx context.Context, txn transaction, from snapshot, to state, more ...coord.Op) error {
	return r.repeat(ctx, txn, append([]coord.Op{coord.SetOp(r.path, encode(to), from.stat.Version)}, more...)...)
}

// repeat sends a transaction that may be carried out twice until its outcome is
// known.
func (r record) repeat(ctx context.Context, txn transaction, ops ...coord.Op) error {
	return recipe.Retry(ctx, r.client, func(ctx context.Context) error {
		_, err := txn(ctx, ops...)
		return err
	})
}
