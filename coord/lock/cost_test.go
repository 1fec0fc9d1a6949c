package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// quietly returns the requests that f made, without the pings and probes that
// a session of that time-out would send meanwhile.
func quietly(t *testing.T, w *zktest.World, f func(*coord.Client)) zkembed.Counts {
	t.Helper()
	c := coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	m := mutex(t, c, w.Path("lock"))
	require.NoError(t, acquire(t, m).Release(t.Context())) // makes the directory
	before := w.Embedded().SessionCounts(c.SessionID())
	f(c)
	return w.Embedded().SessionCounts(c.SessionID()).Since(before)
}

func embedded(t *testing.T) *zktest.World {
	w := zktest.NewEmbedded(t, zkembed.WithTick(200*time.Millisecond), zkembed.WithSessionTimeouts(0, time.Hour))
	return w
}

func TestAnUncontendedAcquireAndReleaseAreThreeRequests(t *testing.T) {
	w := embedded(t)
	const cycles = 100
	counts := quietly(t, w, func(c *coord.Client) {
		m := mutex(t, c, w.Path("lock"))
		for range cycles {
			require.NoError(t, acquire(t, m).Release(t.Context()))
		}
	})
	t.Log(counts)
	require.Equal(t, cycles, counts[zkembed.OpCreate])
	require.Equal(t, cycles, counts[zkembed.OpDelete])
	require.Equal(t, cycles, counts[zkembed.OpGetChildren2])
	require.Equal(t, 3*cycles, counts.Total()-counts[zkembed.OpGetData])
	// A hold that a busy machine keeps for more than 20 ms reads its own node.
	require.LessOrEqual(t, counts[zkembed.OpGetData], cycles)
}

// In virtual time only what is delayed takes time. The list's reply stands
// behind the create's, and adds no round trip.
func TestAnUncontendedAcquireAndReleaseAreTwoRoundTrips(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock")
		h, err := m.Acquire(b.Context())
		require.NoError(b, err)
		require.NoError(b, h.Release(b.Context()))
		const way = 50 * time.Millisecond
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpDelete}}, zkembed.DelayReply(way))
		begun := time.Now()
		h, err = m.Acquire(b.Context())
		require.NoError(b, err)
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, 2, slow.Fired())
		require.Equal(b, 2*way, time.Since(begun))
	})
}

func TestABusyTryIsOneRead(t *testing.T) {
	w := embedded(t)
	h := acquire(t, mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("other")))
	counts := quietly(t, w, func(c *coord.Client) {
		_, err := mutex(t, c, w.Path("other")).TryAcquire(t.Context())
		require.ErrorIs(t, err, coord.ErrBusy)
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
					h, err := m.Acquire(b.Context())
					if err == nil {
						time.Sleep(held)
						err = h.Release(b.Context())
					}
					if err != nil {
						b.Error(err)
					}
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

// What an acquire that gives up has watched is watched for the next one, too.
func TestAcquiresThatTimeOutAreFourRequestsEachAndLeaveOneWatchInAll(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h, err := mutex(b.T, b.Open(), "/lock").Acquire(b.Context())
		require.NoError(b, err)
		time.Sleep(time.Second) // the holder watches its own node by now
		c := b.Open(coord.WithSessionTimeout(time.Minute))
		m := mutex(b.T, c, "/lock")
		watches, nodes := b.Server.WatchCount(), len(b.Server.Nodes())
		const attempts = 20
		for range attempts {
			ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
			_, err := m.Acquire(ctx)
			cancel()
			require.ErrorIs(b, err, context.DeadlineExceeded)
			time.Sleep(100 * time.Millisecond) // the deletion may go on
		}
		counts := b.Server.SessionCounts(c.SessionID())
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

		m, granted := mutex(b.T, b.Open(), "/lock"), make(chan *coord.Hold)
		h, err := mutex(b.T, c, "/lock").Acquire(b.Context())
		require.NoError(b, err)
		before := b.Server.Counts() // the directory is made
		go func() {
			h, err := m.Acquire(b.Context())
			if err != nil {
				b.Error(err)
			}
			granted <- h
		}()
		time.Sleep(time.Second)
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, (<-granted).Release(b.Context()))
		require.Zero(b, b.Server.Counts().Since(before)[zkembed.OpExists])
		require.Zero(b, b.Server.WatchCount(), "on nodes that have gone")
	})
}
