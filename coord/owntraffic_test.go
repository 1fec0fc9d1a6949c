package coord_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const mbit = 1_000_000 / 8 // bytes in a second

// link is what a client is connected by.
type link struct {
	rate  atomic.Int64 // bytes in a second, each way
	takes time.Duration
}

func linkOf(rate int64) *link {
	l := &link{}
	l.rate.Store(rate)
	return l
}

// over has a client connect by a link.
func (b bubble) over(l *link) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := b.Server.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return virtual.Link(conn, func() int { return int(l.rate.Load()) }, l.takes), nil
	})
}

const batchSize = 900_000

// putBatch makes nodes below a directory.
func putBatch(ctx context.Context, c *coord.Client, dir string, number int) error {
	ops := make([]coord.Op, 9)
	for i := range ops {
		ops[i] = coord.CreateOp(fmt.Sprintf("%s/%d-%d", dir, number, i), make([]byte, batchSize/len(ops)))
	}
	return coordtest.Err(c.Txn(ctx, ops...))
}

// putBatches makes so many of them side by side, and returns how many were
// carried. The others were refused because of the link.
func putBatches(ctx context.Context, t testing.TB, c *coord.Client, dir string, n int) (carried int) {
	require.NoError(t, c.Create(ctx, dir, nil))
	done := make(chan error)
	for i := range n {
		go func() { done <- putBatch(ctx, c, dir, i) }()
	}
	for range n {
		err := <-done
		if err == nil {
			carried++
			continue
		}
		require.ErrorIs(t, err, coord.ErrTooLarge)
		require.NotErrorIs(t, err, coord.ErrUnconfirmed, "nothing was sent")
		require.ErrorContains(t, err, "on this link: 900")
		require.ErrorContains(t, err, "kB/s")
	}
	return carried
}

func TestOwnTrafficCostsNoHoldAndNoConnection(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second} {
		for _, rate := range []int64{1, 2, 4, 8, 16} {
			for n, takes := range map[int]time.Duration{16: 0, 8: timeout / 40} {
				t.Run(fmt.Sprintf("T=%v/%dMbit/%v/%d", timeout, rate, takes, n), func(t *testing.T) {
					inBubble(t, func(b bubble) {
						l := linkOf(rate * mbit)
						l.takes = takes
						c, lost := b.hearing(event.SessionDown, b.over(l), coord.WithSessionTimeout(timeout))
						h := b.acquire(c)
						time.Sleep(2 * timeout)
						carried := putBatches(b.Context(), b, c, "/batches", n)
						require.NoError(b, h.Err())
						require.Empty(b, lost)
						if all := time.Second*batchSize/time.Duration(rate*mbit) + 2*takes; all < timeout/4 {
							require.Equal(b, n, carried)
						} else {
							require.Zero(b, carried)
						}
						require.NoError(b, h.Release(b.Context()))
					})
				})
			}
		}
	}
}

// Requests that take up to a T/4, one after the other: no pause between them is
// long enough for the probes unless the client makes it.
func TestOwnTrafficOfRequestsThatGoAloneCostsNoHold(t *testing.T) {
	for _, size := range []int{450_000, 900_000} {
		for _, rate := range []int64{4, 8} {
			for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second} {
				t.Run(fmt.Sprintf("%d bytes/%dMbit/T=%v", size, rate, timeout), func(t *testing.T) {
					inBubble(t, func(b bubble) {
						l := linkOf(rate * mbit)
						l.takes = timeout / 200
						c, lost := b.hearing(event.SessionDown, b.over(l), coord.WithSessionTimeout(timeout))
						h := b.acquire(c)
						done := make(chan error)
						for i := range 40 {
							go func() { done <- c.Create(b.Context(), fmt.Sprintf("/node-%d", i), make([]byte, size)) }()
						}
						for range 40 {
							if err := <-done; err != nil {
								require.ErrorIs(b, err, coord.ErrTooLarge)
							}
						}
						require.NoError(b, h.Err())
						require.Empty(b, lost)
						require.NoError(b, h.Release(b.Context()))
					})
				})
			}
		}
	}
}

func TestOwnTrafficThatIsHeldBackWaitsByItsContext(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(b.over(linkOf(8*mbit)), coord.WithSessionTimeout(4*time.Second))
		h := b.acquire(c)
		require.NoError(b, c.Create(b.Context(), "/dir", nil))
		first := coordtest.Go(func() error { return putBatch(b.Context(), c, "/dir", 1) })
		time.Sleep(500 * time.Millisecond)
		second := coordtest.Go(func() error { return putBatch(b.Within(time.Second), c, "/dir", 2) })
		third := coordtest.Go(func() error { return putBatch(b.Within(100*time.Millisecond), c, "/dir", 3) })
		err := <-third
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed, "it was not sent")
		require.ErrorContains(b, err, "wait for the link, behind")
		require.ErrorIs(b, <-second, context.DeadlineExceeded)
		require.NoError(b, <-first)
		names, err := c.Children(b.Context(), "/dir")
		require.NoError(b, err)
		require.NotContains(b, names, "3-0")
		require.NoError(b, h.Err())
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestOwnTrafficLetsSmallRequestsThrough(t *testing.T) {
	inBubble(t, func(b bubble) {
		const timeout = 10 * time.Second
		c := b.Open(b.over(linkOf(8*mbit)), coord.WithSessionTimeout(timeout))
		done := coordtest.Go(func() int { return putBatches(b.Context(), b, c, "/batches", 16) })
		for range 5 {
			begun := time.Now()
			h := b.acquire(c)
			require.NoError(b, h.Release(b.Context()))
			require.Less(b, time.Since(begun), timeout)
		}
		require.Equal(b, 16, <-done)
	})
}

// Claims' data travel as all other data do.
func TestOwnTrafficOfClaimsCostsNoHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown, b.over(linkOf(2*mbit)), coord.WithSessionTimeout(4*time.Second))
		h := b.acquire(c)
		done := make(chan error)
		for i := range 16 {
			spec := large(200_000)
			spec.Line.Dir = fmt.Sprint("/large-", i)
			go func() {
				hold, err := recipe.Acquire(b.Context(), c, &spec, first)
				if err == nil {
					err = hold.Release(b.Context())
				}
				done <- err
			}()
		}
		for range 16 {
			require.NoError(b, <-done)
		}
		require.ErrorIs(b, coordtest.Err(recipe.Acquire(b.Context(), c, ptr(large(400_000)), first)), coord.ErrTooLarge)
		require.NoError(b, h.Err())
		require.Empty(b, lost)
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestOwnTrafficFollowsWhatTheLinkCarries(t *testing.T) {
	inBubble(t, func(b bubble) {
		l := linkOf(100 * mbit)
		c, lost := b.hearing(event.SessionDown, b.over(l), coord.WithSessionTimeout(10*time.Second))
		h := b.acquire(c)
		require.Equal(b, 8, putBatches(b.Context(), b, c, "/fast", 8))
		time.Sleep(20 * time.Second)
		l.rate.Store(1 * mbit)
		require.Zero(b, putBatches(b.Context(), b, c, "/slow", 8))
		begun := time.Now()
		require.ErrorIs(b, putBatch(b.Context(), c, "/slow", 9), coord.ErrTooLarge)
		require.Zero(b, time.Since(begun), "it is known by now")
		l.rate.Store(8 * mbit)
		time.Sleep(20 * time.Second)
		require.Equal(b, 8, putBatches(b.Context(), b, c, "/fair", 8))
		require.NoError(b, h.Err())
		require.Empty(b, lost)
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestOwnTrafficOnAFastLinkIsHardlyHeldBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/dir", nil))
		before := b.Server.Counts()
		for i := range 16 {
			require.NoError(b, putBatch(b.Context(), c, "/dir", i))
		}
		require.LessOrEqual(b, b.Server.Counts().Since(before)[zkembed.OpExists], 3, "trials")
	})
}

func TestOwnTrafficCostsNoHoldOnARealLink(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		w.Proxy().Rate(16 * mbit)
		defer w.Proxy().Heal()
		var lost atomic.Int32
		c := coordtest.Open(t, w.Proxy().Addr(), coord.WithSessionTimeout(4*time.Second),
			coord.WithObserver(func(e event.Event) {
				if e.Kind == event.SessionDown {
					lost.Add(1)
				}
			}))
		spec := mutex
		spec.Line.Dir = w.Path("lock")
		h, err := recipe.Acquire(coordtest.Limited(t), c, &spec, first)
		require.NoError(t, err)
		require.Equal(t, 8, putBatches(coordtest.Limited(t), t, c, w.Path("batches"), 8))
		require.NoError(t, h.Err())
		require.Zero(t, lost.Load())
		require.NoError(t, h.Release(coordtest.Limited(t)))
	})
}
