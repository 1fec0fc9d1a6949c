package simulate

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
)

// leases takes one lease or several of a semaphore with a limit.
func leases(limit int) func(k *worker, ctx context.Context, c *coord.Client) bool {
	return func(k *worker, ctx context.Context, c *coord.Client) bool {
		s := must(semaphore.New(c, k.key, limit))
		n := 1 + k.r.IntN(limit)
		try := chance(k.r, 0.15) && !k.isCalm()
		g, err := history.Acquire(k.rec, k.name, k.key, history.Lease, func() (*coord.Group, error) {
			if try {
				return s.TryAcquireN(ctx, n)
			}
			return s.AcquireN(ctx, n)
		}, history.Weight(n))
		k.waited(ctx, "AcquireN", err, coord.ErrBusy)
		if err != nil {
			return false
		}
		k.granted(k.recipe, k.key)
		for _, h := range g.Hold.Holds() {
			k.inspect(h)
		}
		k.use(c, g.Hold.Holds()[0], nil)
		ending, cancel := k.ending()
		defer cancel()
		k.released("leases", func() error { return g.Release(ending) })
		return true
	}
}
