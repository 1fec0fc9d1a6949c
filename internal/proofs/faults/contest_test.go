package faults

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// contest is a number of clients that acquire and release one lock again and
// again, and what they saw.
type contest struct {
	s      scene
	hold   func(worker int) time.Duration
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	grants []grant
	lost   int
	failed []error
}

// grant is a hold as its holder saw it, from the return of Acquire to the call
// of Release or the loss.
type grant struct {
	worker   int
	token    int64
	from, to time.Time
	lost     error
}

// contest starts the contest. Each worker holds for as long as hold says.
func (s scene) contest(clients []*coord.Client, hold func(worker int) time.Duration) *contest {
	ctx, cancel := context.WithCancel(context.Background())
	c := &contest{s: s, hold: hold, cancel: cancel}
	for i, client := range clients {
		m := s.mutex(client)
		c.wg.Go(func() {
			for ctx.Err() == nil {
				h, err := m.Acquire(ctx)
				if err == nil {
					c.spend(ctx, i, h)
				} else if ctx.Err() == nil {
					c.mu.Lock()
					c.failed = append(c.failed, err)
					c.mu.Unlock()
					return
				}
			}
		})
	}
	s.Cleanup(func() { cancel(); c.wg.Wait() })
	return c
}

// spend holds h for a while, and releases it.
func (c *contest) spend(ctx context.Context, worker int, h *coord.Hold) {
	g := grant{worker: worker, token: h.Token(), from: time.Now()}
	timer := time.NewTimer(c.hold(worker))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.Done():
	case <-ctx.Done():
	}
	g.to, g.lost = time.Now(), h.Err()
	if deadline := h.Deadline(); errors.Is(g.lost, coord.ErrWindowOver) && deadline.Before(g.to) {
		g.to = deadline // from then on Err returns the loss
	}
	c.mu.Lock()
	c.grants = append(c.grants, g)
	if g.lost != nil {
		c.lost++
	}
	c.mu.Unlock()
	_ = h.Release(context.Background()) // fails while no server answers; goes on by itself
}

func (c *contest) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.grants)
}

// progresses checks that the lock is granted again within the given time (l).
func (c *contest) progresses(within time.Duration) {
	c.s.Helper()
	before, begun := c.count(), time.Now()
	zktest.Eventually(c.s, max(within, patience), func() bool { return c.count() > before+1 }, "no worker is granted the lock")
	c.s.onTime("granted", begun, within, time.Now())
}

// stop ends the contest and checks what the workers saw (t). No fault takes a
// session or a node away by force in a contest.
func (c *contest) stop() []grant {
	c.s.Helper()
	c.cancel()
	stopped := make(chan struct{})
	go func() { c.wg.Wait(); close(stopped) }()
	zktest.Receive(c.s, patience, stopped, "a worker is stuck")
	require.Empty(c.s, c.failed)
	slices.SortFunc(c.grants, func(a, b grant) int { return a.from.Compare(b.from) })
	for i, g := range c.grants[1:] {
		before := c.grants[i]
		require.Greater(c.s, g.token, before.token, "tokens must grow in the order of grants")
		require.False(c.s, g.from.Before(before.to), "worker %d and %d held at once for %v", before.worker, g.worker, before.to.Sub(g.from))
	}
	c.s.Logf("%d grants, %d lost", len(c.grants), c.lost)
	return c.grants
}

// steady makes every hold last d.
func steady(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}
