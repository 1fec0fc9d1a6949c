package doublebarrier

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
)

// record is the node ready: a versioned record, the one primitive that this
// recipe needs and coord does not have. What the members must agree on stands
// in it, and a client changes it in one way only: it reads, decides, and writes
// for the version it has read. Of several that decide at once, one succeeds. A
// write whose reply was lost is sent again until its outcome is known; it
// cannot take effect twice, since the first time changes the version.
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
func (r record) watchOrMake(ctx context.Context, v *coord.View, size int) (snapshot, error) {
	for {
		s, err := snapshotOf(v.Get(r.path))
		if !errors.Is(err, coord.ErrNoNode) {
			return s, err
		}
		err = r.client.Retry(ctx, func(ctx context.Context) error {
			return r.client.Create(ctx, r.path, encode(state{Format: format, Size: size}))
		})
		if err != nil && !errors.Is(err, coord.ErrNodeExists) {
			return snapshot{}, err
		}
	}
}

// writer carries out transactions: a client, or a hold as long as it lasts.
type writer interface {
	Txn(ctx context.Context, ops ...coord.Op) ([]coord.Result, error)
}

// write replaces what was read as from, along with the checks. It fails with
// [coord.ErrBadVersion] when the record has changed since, and with
// [coord.ErrNoNode] when it is gone, or a node that is checked.
func (r record) write(ctx context.Context, w writer, from snapshot, to state, checks ...coord.Op) error {
	return r.repeat(ctx, w, append(checks, coord.SetOp(r.path, encode(to), from.stat.Version))...)
}

// repeat repeats a transaction that may be carried out twice until its outcome
// is known.
func (r record) repeat(ctx context.Context, w writer, ops ...coord.Op) error {
	return r.client.Retry(ctx, func(ctx context.Context) error {
		_, err := w.Txn(ctx, ops...)
		return err
	})
}
