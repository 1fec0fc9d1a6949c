package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// delay is that of the locks of these tests; it is longer than a session.
const (
	delay = 5 * time.Minute
	T     = coordtest.T
)

func delayed(b coordtest.Bubble, opts ...lock.Option) *lock.Mutex {
	b.Helper()
	return mutex(b.T, b.Open(), "/lock", append(opts, lock.Delay(delay))...)
}

// unclean are the ways in which a hold ends that its holder does not release.
var unclean = map[string]func(b coordtest.Bubble, m *lock.Mutex, h *coord.Hold){
	"its session ends": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		require.NoError(b, b.Server.ExpireSession(h.Session()))
	},
	"it is cut off": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{h.Session()}})
		<-h.Done()
		time.Sleep(2 * T)
		cut.Heal()
	},
	"it is cut off for less than its session": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{h.Session()}})
		<-h.Done()
		cut.Heal()
	},
	"its node is deleted by force": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
	},
	"its client is closed": func(b coordtest.Bubble, m *lock.Mutex, _ *coord.Hold) { b.Close(m.Client()) },
	"it is forfeited": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		recipe.Invalidate(h, context.Canceled)
	},
	"it is released after its loss": func(b coordtest.Bubble, _ *lock.Mutex, h *coord.Hold) {
		require.NoError(b, b.Server.ExpireSession(h.Session()))
		<-h.Done()
		require.NoError(b, h.Release(b.Context()))
	},
}

func TestAfterAnUncleanEndTheNextWaitsForTheDelay(t *testing.T) {
	for _, early := range []bool{true, false} {
		coordtest.InBubbles(t, unclean, func(b coordtest.Bubble, end func(b coordtest.Bubble, m *lock.Mutex, h *coord.Hold)) {
			m, other := delayed(b), delayed(b)
			h := coordtest.Acquire(b, m)
			var waiting <-chan coordtest.Outcome[*coord.Hold]
			if early {
				waiting = coordtest.Begin(b.Context(), other.Acquire)
				time.Sleep(time.Second)
			}
			end(b, m, h)
			<-h.Done()
			ended := time.Now()
			if !early {
				time.Sleep(2 * T)
				ended = time.Now()
				waiting = coordtest.Begin(b.Context(), other.Acquire)
			}
			next := coordtest.Had(b, waiting)
			require.GreaterOrEqual(b, time.Since(ended)+2*T, delay)
			require.Less(b, time.Since(ended), delay+2*T)
			if !early {
				require.GreaterOrEqual(b, time.Since(ended), delay)
			}
			require.NoError(b, next.Err())
			require.NoError(b, next.Release(b.Context()))
			released := time.Now()
			again := coordtest.Acquire(b, other)
			require.Less(b, time.Since(released), time.Second, "a delay after a release")
			require.NoError(b, again.Release(b.Context()))
		})
	}
}

func TestAfterAReleaseThereIsNoDelay(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("lock")
		var ms [2]*lock.Mutex
		for i := range ms {
			ms[i] = mutex(t, coordtest.Open(t, w.ConnectString()), path, lock.Delay(time.Hour))
		}
		for i := range 6 {
			h := coordtest.Acquire(t, ms[i%2])
			if i == 3 { // also when somebody has written into the node
				require.NoError(t, inspect.Revoke(coordtest.Limited(t), ms[0].Client(), h.Node()))
			}
			names := coordtest.Children(t, w, path)
			require.Contains(t, names, "holder")
			require.NoError(t, h.Release(coordtest.Limited(t)))
		}
		names := coordtest.Children(t, w, path)
		require.Empty(t, names)
		require.NoError(t, ms[0].Do(coordtest.Limited(t), func(context.Context, *coord.Hold) error { return nil }))
		h := coordtest.Call(t, ms[1].TryAcquire)
		w.ExpireSession(h.Session())
		zktest.Eventually(t, coordtest.Soon, func() bool {
			_, err := ms[0].TryAcquire(coordtest.Limited(t))
			require.ErrorIs(t, err, coord.ErrBusy)
			return len(err.Error()) > len(coord.ErrBusy.Error())+100 // it names the former holder
		}, "a try that finds the unclean end")
		require.ErrorIs(t, coordtest.Err(ms[0].Acquire(coordtest.Within(t, 50*time.Millisecond))), context.DeadlineExceeded)
	})
}

// Those who wait through the delay die, give up, or only try, and together wait
// for it once.
func TestTheDelayGoesOnWhenTheOneWhoWaitsIsGone(t *testing.T) {
	coordtest.InBubbles(t, map[string]func(b coordtest.Bubble){
		"it dies": func(b coordtest.Bubble) {
			c := b.Open()
			failed := coordtest.Go(func() error {
				return coordtest.Err(mutex(b.T, c, "/lock", lock.Delay(delay)).Acquire(b.Within(delay / 6)))
			})
			time.Sleep(delay / 8)
			require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
			require.Error(b, <-failed)
		},
		"its client is closed": func(b coordtest.Bubble) {
			c := b.Open()
			failed := coordtest.Go(func() error {
				return coordtest.Err(mutex(b.T, c, "/lock", lock.Delay(delay)).Acquire(b.Context()))
			})
			time.Sleep(delay / 8)
			b.Close(c)
			require.ErrorIs(b, <-failed, coord.ErrClosed)
		},
		"it gives up": func(b coordtest.Bubble) {
			require.ErrorIs(b, coordtest.Err(delayed(b).Acquire(b.Within(delay/8))), context.DeadlineExceeded)
		},
		"it tries": func(b coordtest.Bubble) {
			require.ErrorIs(b, coordtest.Err(delayed(b).TryAcquire(b.Context())), coord.ErrBusy)
			time.Sleep(delay / 8)
		},
		"it tries with a local queue": func(b coordtest.Bubble) {
			require.ErrorIs(b, coordtest.Err(delayed(b, lock.LocalQueue(1, time.Second)).TryAcquire(b.Context())), coord.ErrBusy)
			time.Sleep(delay / 8)
		},
		"its replies are lost": func(b coordtest.Bubble) {
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 2}, zkembed.LoseReply())
			require.ErrorIs(b, coordtest.Err(delayed(b).Acquire(b.Within(delay/8))), context.DeadlineExceeded)
			require.Equal(b, 2, lost.Fired())
		},
	}, func(b coordtest.Bubble, attempt func(b coordtest.Bubble)) {
		h := coordtest.Acquire(b, delayed(b))
		require.NoError(b, b.Server.ExpireSession(h.Session()))
		<-h.Done()
		begun := time.Now()
		for range 3 {
			attempt(b)
		}
		h, err := delayed(b).Acquire(b.Context())
		require.NoError(b, err)
		require.InDelta(b, delay, time.Since(begun), float64(10*time.Second))
		require.GreaterOrEqual(b, time.Since(begun), delay)
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, coordtest.Acquire(b, delayed(b)).Release(b.Context()))
	})
}

func TestALostReplyOfAGrantIsNoUncleanEnd(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := delayed(b)
		require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.LoseReply())
		begun := time.Now()
		h := coordtest.Acquire(b, m)
		require.Equal(b, 1, lost.Fired())
		lost = b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.LoseReply())
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, 1, lost.Fired())
		require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
		require.Less(b, time.Since(begun), 2*T)
	})
}

// The hold of one that waits through the delay is lost: it waits on, with
// another place.
func TestOneWhoWaitsThroughTheDelayMayLoseItsSession(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h := coordtest.Acquire(b, delayed(b))
		require.NoError(b, b.Server.ExpireSession(h.Session()))
		<-h.Done()
		begun, c := time.Now(), b.Open()
		next := coordtest.Go(func() error {
			return mutex(b.T, c, "/lock", lock.Delay(delay)).
				Do(b.Context(), func(context.Context, *coord.Hold) error { return nil })
		})
		time.Sleep(delay / 2)
		require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		require.NoError(b, <-next)
		require.InDelta(b, delay, time.Since(begun), float64(5*time.Second))
	})
}

func TestALocalQueueWithADelayLeavesNoRecordBehind(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := delayed(b, lock.LocalQueue(10, time.Minute), lock.Linger(time.Minute), lock.Reentrant())
		for range 20 {
			h := coordtest.Acquire(b, m)
			inner, err := m.Acquire(h.Context(b.Context()))
			require.NoError(b, err)
			require.NoError(b, inner.Release(b.Context()))
			require.NoError(b, h.Release(b.Context()))
		}
		time.Sleep(2 * time.Minute)
		require.Empty(b, coordtest.Call(b, m.Contenders))
		begun := time.Now()
		require.NoError(b, coordtest.Acquire(b, delayed(b)).Release(b.Context()))
		require.Less(b, time.Since(begun), time.Second)
	})
}

func TestADelayCostsOneRequest(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		cost := func(opts ...lock.Option) int {
			m := mutex(b.T, c, "/lock", append(opts, lock.Reentrant())...)
			require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
			time.Sleep(time.Millisecond)
			before := b.Server.Counts()
			h := coordtest.Acquire(b, m)
			inner, err := m.Acquire(h.Context(b.Context()))
			require.NoError(b, err)
			require.NoError(b, inner.Release(b.Context()))
			require.NoError(b, h.Release(b.Context()))
			return b.Server.Counts().Since(before).Total()
		}
		require.Equal(b, cost()+1, cost(lock.Delay(delay)))
	})
}
