package cli

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/stock"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
)

// sellerVerb is one selling process of the stock demo.
type sellerVerb struct {
	ID     int
	Unsafe bool
	Path   nodePath `arg:""`
	File   string   `arg:""`
}

// Run sells until standard input ends.
func (v *sellerVerb) Run(s *streams, c *connection) error {
	seller := stock.Seller{ID: v.ID, File: v.File, In: s.in, Out: s.out, Lock: withoutLock}
	if !v.Unsafe {
		client, err := c.open(context.Background())
		if err != nil {
			return err
		}
		defer hangUp(client)
		m, err := lock.New(client, string(v.Path))
		if err != nil {
			return failure(err)
		}
		seller.Lock = underLock(m)
	}
	return failure(seller.Run(context.Background()))
}

func withoutLock(_ context.Context, do func(int64, func() error) error) error {
	return do(0, func() error { return nil })
}

func underLock(m *lock.Mutex) stock.Lock {
	return func(ctx context.Context, do func(token int64, lost func() error) error) error {
		h, err := m.Acquire(ctx)
		if err != nil {
			return err
		}
		err = do(h.Token(), h.Err)
		if released := h.Release(ctx); err == nil && !errors.Is(released, coord.ErrUnconfirmed) {
			err = released // an unconfirmed release goes on in the background
		}
		return err
	}
}
