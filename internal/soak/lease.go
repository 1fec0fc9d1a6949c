package soak

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
)

// leaseWorker takes one lease of a semaphore, or two.
func leaseWorker(w *worker) (cycle, error) {
	s, err := semaphore.New(w.client, w.key, leases)
	return func(ctx context.Context) error {
		switch w.rng.IntN(10) {
		case 0:
			return occupy(ctx, w, history.Lease, s.TryAcquire)
		case 1, 2:
			return occupy(ctx, w, history.Lease, func(ctx context.Context) (*coord.Group, error) { return s.AcquireN(ctx, 2) }, history.Weight(2))
		}
		return occupy(ctx, w, history.Lease, s.Acquire)
	}, err
}
