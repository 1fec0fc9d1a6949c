package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// quietly returns the requests that f made, without the pings and probes that
// a session of that timeout would send meanwhile.
func quietly(t *testing.T, w *zktest.World, f func(*coord.Client)) zkembed.Counts {
	t.Helper()
	c := coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	m := mutex(t, c, w.Path("lock"))
	require.NoError(t, coordtest.Acquire(t, m).Release(t.Context())) // makes the directory
	return coordtest.Spent(w.Embedded(), c, func() { f(c) })
}

func TestABusyTryIsOneRead(t *testing.T) {
	w := zktest.NewEmbedded(t)
	h := coordtest.Acquire(t, mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("other")))
	counts := quietly(t, w, func(c *coord.Client) {
		require.ErrorIs(t, coordtest.Err(mutex(t, c, w.Path("other")).TryAcquire(t.Context())), coord.ErrBusy)
	})
	require.Equal(t, 1, counts.Total(), "%v", counts)
	require.NoError(t, h.Release(t.Context()))
}

// A waiter lists when it joins and once more, reads the two before it, and not
// its own node, unless it waits for long.
func TestAHandOffThatComesSoonIsSixRequests(t *testing.T) {
	for sessions, extra := range map[int]int{2: -2, 8: 0, 40: 0} {
		for held, extra := range map[time.Duration]int{time.Millisecond: extra, 100 * time.Millisecond: 1} {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				const rounds = 5
				turn := func(m *lock.Mutex) {
					assert.NoError(b, m.Do(b.Context(), func(context.Context, *coord.Hold) error { time.Sleep(held); return nil }))
				}
				var all []*lock.Mutex
				var working sync.WaitGroup
				for range sessions {
					all = append(all, mutex(b.T, b.Open(coord.WithSessionTimeout(time.Hour)), "/lock"))
				}
				turn(all[0]) // makes the directory
				before := b.Server.Counts()
				for _, m := range all {
					working.Go(func() {
						for range rounds {
							turn(m)
						}
					})
					time.Sleep(10 * time.Microsecond)
				}
				working.Wait()
				made := b.Server.Counts().Since(before)
				b.Logf("%d sessions, held for %v: %v", sessions, held, made)
				require.LessOrEqual(b, made.Total(), (6+extra)*rounds*sessions)
			}, zkembed.WithSessionTimeouts(0, time.Hour))
		}
	}
}

// The watch of an acquire that gives up serves the next acquire, too.
func TestAcquiresThatTimeOutAreFourRequestsEachAndLeaveOneWatchInAll(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h := coordtest.Acquire(b, mutex(b.T, b.Open(), "/lock"))
		time.Sleep(time.Second) // the holder watches its own node by now
		c := b.Open(coord.WithSessionTimeout(time.Minute))
		m := mutex(b.T, c, "/lock")
		watches, nodes := b.Server.WatchCount(), len(b.Server.Nodes())
		const attempts = 20
		for range attempts {
			require.ErrorIs(b, coordtest.Err(m.Acquire(b.Within(100*time.Millisecond))), context.DeadlineExceeded)
			time.Sleep(100 * time.Millisecond) // the deletion may go on
		}
		counts := b.Server.SessionCounts(c.Info().SessionID)
		require.Equal(b, attempts, counts[zkembed.OpCreate])
		require.Equal(b, attempts, counts[zkembed.OpDelete])
		reads := counts[zkembed.OpGetChildren2] + counts[zkembed.OpGetData]
		require.LessOrEqual(b, reads, 2*attempts+1, "%v", counts)
		require.LessOrEqual(b, b.Server.WatchCount(), watches+1)
		require.Len(b, b.Server.Nodes(), nodes)
		require.NoError(b, h.Release(b.Context()))
	})
}

// A watch by exists would stay on a node that has gone already; a watch by
// reading is not left there.
func TestAMissingNodeIsNotWatched(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		require.ErrorIs(b, c.Wait(b.Context(), func(v *coord.View) (bool, error) {
			_, _, err := v.Get("/missing")
			return true, err
		}), coord.ErrNoNode)
		require.Zero(b, b.Server.WatchCount())

		h := coordtest.Acquire(b, mutex(b.T, c, "/lock"))
		before := b.Server.Counts() // the directory is made
		next := coordtest.Begin(b.Context(), mutex(b.T, b.Open(), "/lock").Acquire)
		time.Sleep(time.Second)
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, coordtest.Had(b, next).Release(b.Context()))
		require.Zero(b, b.Server.Counts().Since(before)[zkembed.OpExists])
		require.Zero(b, b.Server.WatchCount(), "on nodes that have gone")
	})
}

// The server is in the same process, so times and allocations are those of both
// sides; what changes between two revisions of the library is its own.

func BenchmarkAcquireRelease(b *testing.B) {
	cycle := contender(b, zktest.NewEmbedded(b))
	b.ReportAllocs()
	for b.Loop() {
		cycle()
	}
}

// BenchmarkHandOff is one cycle of n sessions that want the same lock all the
// time.
func BenchmarkHandOff(b *testing.B) {
	for _, n := range []int{2, 8, 32, 128} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			w := zktest.NewEmbedded(b)
			cycles := make([]func(), n)
			for i := range cycles {
				cycles[i] = contender(b, w)
			}
			together(b, cycles)
		})
	}
}

// together measures cycles that run all the time, each in its goroutine.
func together(b *testing.B, cycles []func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for _, cycle := range cycles {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				cycle()
			}
		})
	}
	running.Wait()
	b.StopTimer()
}

// contender returns one cycle of acquire and release of a session of its own,
// after a first one.
func contender(b *testing.B, w *zktest.World, opts ...lock.Option) (cycle func()) {
	w.SetTimeout(time.Minute) // no probe comes in between
	m, err := lock.New(coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute)),
		w.Path("lock"), opts...)
	require.NoError(b, err)
	cycle = func() {
		h, err := m.Acquire(b.Context())
		if err == nil {
			err = h.Release(b.Context())
		}
		assert.NoError(b, err)
	}
	cycle()
	return cycle
}

// BenchmarkManyInOneProcess is one cycle of 2,000 goroutines that share a
// client and want the same lock all the time.
func BenchmarkManyInOneProcess(b *testing.B) {
	for name, opts := range map[string][]lock.Option{
		"queue=none":  nil,
		"queue=local": {lock.LocalQueue(1000, time.Second)},
	} {
		b.Run(name, func(b *testing.B) {
			together(b, slices.Repeat([]func(){contender(b, zktest.NewEmbedded(b), opts...)}, 2000))
		})
	}
}

// BenchmarkLinger is one cycle of a lock that lingers and is taken again.
func BenchmarkLinger(b *testing.B) {
	cycle := contender(b, zktest.NewEmbedded(b), lock.Linger(time.Minute))
	b.ReportAllocs()
	for b.Loop() {
		cycle()
	}
}

// contested is a lock, whose function runs while it is held.
type contested func(ctx context.Context, held func()) error

// herdLock is the simple lock, to compare with and not to use: one ephemeral
// node, which all try to create and all watch.
func herdLock(c *coord.Client) contested {
	const node = "/herd"
	return func(ctx context.Context, held func()) error {
		for {
			_, err := c.Txn(ctx, coord.EphemeralOp(node, nil))
			if err == nil {
				held()
				return c.Delete(ctx, node, -1)
			}
			if !errors.Is(err, coord.ErrNodeExists) {
				return err
			}
			err = c.Wait(ctx, func(v *coord.View) (gone bool, err error) {
				_, _, err = v.Get(node)
				return false, err
			})
			if !errors.Is(err, coord.ErrNoNode) {
				return err
			}
		}
	}
}

// handOver is what the server saw.
type handOver struct{ requests, events int }

// handOvers has n wait, each in a session of its own, and releases the lock
// until all have had it. It returns what the server saw when n waited, and in
// all of the n hand-overs.
func handOvers(t *testing.T, n int, lockOf func(*coord.Client) contested) (first, all handOver) {
	t.Helper()
	const long = 10 * time.Hour // no client pings or probes meanwhile
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var done sync.WaitGroup
		goOn := make(chan bool)
		for range n + 1 {
			do := lockOf(b.Open(coord.WithSessionTimeout(long)))
			done.Go(func() { assert.NoError(b, do(b.Context(), func() { <-goOn })) })
			synctest.Wait()
		}
		time.Sleep(time.Second) // until the background work is done
		begun := b.Server.Counts()
		for i := range n {
			goOn <- true
			time.Sleep(time.Second)
			seen := b.Server.Counts().Since(begun)
			all = handOver{seen.Total(), seen[zkembed.OpNotify]}
			if i == 0 {
				first = all
			}
		}
		goOn <- true
		done.Wait()
	}, zkembed.WithSessionTimeouts(0, long))
	return first, all
}

// The costs with and without a herd: in the simple lock each release wakes
// every waiter, in this one the same two however many wait.
func TestAHandOverCostsTheSameHoweverManyWaitAndWithAHerdItDoesNot(t *testing.T) {
	type row struct{ herd, line handOver }
	rows := map[int]row{}
	t.Log("waiting | herd: requests, events | line: requests, events | all n hand-overs: herd | line")
	for _, n := range []int{2, 8, 32} {
		var r, all row
		r.herd, all.herd = handOvers(t, n, herdLock)
		r.line, all.line = handOvers(t, n, func(c *coord.Client) contested {
			m := mutex(t, c, "/line")
			return func(ctx context.Context, held func()) error {
				return m.Do(ctx, func(context.Context, *coord.Hold) error { held(); return nil })
			}
		})
		rows[n] = r
		t.Logf("%7d | %14d, %6d | %14d, %6d | %8d, %5d | %4d, %5d", n, r.herd.requests, r.herd.events,
			r.line.requests, r.line.events, all.herd.requests, all.herd.events, all.line.requests, all.line.events)
		// The delete, a create by each, and a read by each that came too late.
		require.Equal(t, handOver{1 + n + n - 1, n}, r.herd)
	}
	require.Equal(t, rows[8].line, rows[32].line)
	require.Less(t, rows[32].line.requests, 10)
	require.Less(t, rows[32].line.events, 10)
}
