package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestWaitersAreGrantedInTheOrderOfTheirArrival(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
		h := coordtest.Acquire(t, m)
		order := make(chan int, 10)
		var waiters sync.WaitGroup
		for i := range cap(order) {
			waiters.Go(func() {
				assert.NoError(t, m.Do(context.Background(), func(context.Context, *coord.Hold) error { order <- i; return nil }))
			})
			zktest.Eventually(t, sessionTimeout, func() bool {
				line, err := m.Contenders(context.Background())
				return err == nil && len(line) == i+2
			}, "waiter %d does not queue", i)
		}
		require.NoError(t, h.Release(t.Context()))
		for i := range cap(order) {
			require.Equal(t, i, zktest.Receive(t, 10*time.Second, order, "a waiter is stuck"))
		}
		waiters.Wait()
	})
}

func TestAWaiterThatGivesUpLeavesTheLineToOthers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
		h := coordtest.Acquire(t, m)
		require.ErrorIs(t, coordtest.Err(m.Acquire(coordtest.Within(t, 20*time.Millisecond))), context.DeadlineExceeded)
		last := coordtest.Begin(t.Context(), m.Acquire)
		require.NoError(t, h.Release(t.Context()))
		require.NoError(t, coordtest.Had(t, last).Release(t.Context()))
	})
}

func TestAMutexIsNotReentrantUnlessMadeSo(t *testing.T) {
	w := zktest.NewEmbedded(t)
	plain := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
	h := coordtest.Acquire(t, plain)
	require.ErrorIs(t, coordtest.Err(plain.TryAcquire(h.Context(t.Context()))), coord.ErrBusy)
	require.NoError(t, h.Release(t.Context()))
}

func TestADoInsideADoOfTheSameLockIsRefusedInsteadOfADeadlock(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock")
		var inner error
		err := m.Do(b.Context(), func(ctx context.Context, h *coord.Hold) error {
			inner = m.Do(ctx, func(context.Context, *coord.Hold) error { return nil })
			require.ErrorContains(b, inner, h.Node())
			require.NoError(b, h.Err())
			return nil
		})
		require.NoError(b, err)
		require.ErrorIs(b, inner, coord.ErrInvalid)
		require.ErrorContains(b, inner, "wait for ever")
		require.NoError(b, m.Do(b.Context(), func(context.Context, *coord.Hold) error { return nil }))
	})
}

func TestAReentrantMutexIsHeldUntilTheLastHandleIsReleased(t *testing.T) {
	w := zktest.NewEmbedded(t)
	c := coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	m := mutex(t, c, w.Path("lock"), lock.Reentrant())
	outer := coordtest.Acquire(t, m)
	before := w.Embedded().SessionCounts(c.Info().SessionID).Total()
	inner, err := m.Acquire(outer.Context(t.Context()))
	require.NoError(t, err)
	innermost, err := m.TryAcquire(inner.Context(t.Context()))
	require.NoError(t, err)
	require.Equal(t, outer.Token(), innermost.Token())
	require.NoError(t, outer.Release(t.Context()))
	require.NoError(t, innermost.Release(t.Context()))
	require.LessOrEqual(t, w.Embedded().SessionCounts(c.Info().SessionID).Total()-before, 2,
		"at most a probe and our watch")

	require.ErrorIs(t, coordtest.Err(m.TryAcquire(t.Context())), coord.ErrBusy, "a context without the hold is another's")
	require.Error(t, coordtest.Err(m.TryAcquire(outer.Context(t.Context()))), "that handle was released")
	require.NoError(t, inner.Release(t.Context()))
	require.NoError(t, coordtest.Call(t, m.TryAcquire).Release(t.Context()))
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	w := zktest.NewEmbedded(t)
	m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
	failure := errors.New("failure")
	require.NoError(t, m.Do(t.Context(), func(context.Context, *coord.Hold) error { return nil }))
	require.ErrorIs(t, m.Do(t.Context(), func(context.Context, *coord.Hold) error { return failure }), failure)
	require.Panics(t, func() {
		_ = m.Do(t.Context(), func(context.Context, *coord.Hold) error { panic(failure) })
	})
	require.NoError(t, coordtest.Call(t, m.TryAcquire).Release(t.Context()))
}

func TestContendersListsTheHoldersAndThoseThatWait(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("first"))
		b := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("second"))
		h := coordtest.Acquire(t, mutex(t, a, w.Path("lock")))
		m := mutex(t, b, w.Path("lock"))
		ctx, cancel := context.WithCancel(t.Context())
		waiting := coordtest.Begin(ctx, m.Acquire)
		var line []inspect.Contender
		zktest.Eventually(t, sessionTimeout, func() bool {
			var err error
			line, err = m.Contenders(t.Context())
			return err == nil && len(line) == 2
		}, "the second does not queue")
		cancel()
		require.ErrorIs(t, (<-waiting).Err, context.Canceled)
		require.True(t, line[0].Holds)
		require.False(t, line[1].Holds)
		require.Equal(t, h.Node(), line[0].Node)
		require.Equal(t, a.Info().SessionID, line[0].Session)
		require.Equal(t, h.Token(), line[0].Token)
		require.Regexp(t, "^first ", line[0].Owner)
		require.Regexp(t, "^second ", line[1].Owner)
		require.WithinDuration(t, time.Now(), line[0].Since, time.Minute)
		require.NoError(t, h.Release(t.Context()))
	})
}

// A shared hold of the same line is no leave to enter alone.
func TestAMutexInsideOfAReadHoldIsRefused(t *testing.T) {
	w := zktest.NewEmbedded(t)
	c := coordtest.Open(t, w.ConnectString())
	for _, opts := range [][]lock.Option{nil, {lock.Reentrant()}} {
		m := mutex(t, c, w.Path("lock"), opts...)
		shared, _, err := recipe.Join(t.Context(), c, &coord.Spec{Line: inspect.LockLine(w.Path("lock")), Kind: "read"})
		require.NoError(t, err)
		require.ErrorIs(t, coordtest.Err(m.TryAcquire(shared.Context(t.Context()))), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(m.Acquire(shared.Context(t.Context()))), coord.ErrInvalid)
		require.NoError(t, shared.Release(t.Context()))
	}
}

func TestMain(m *testing.M) { zktest.Main(m) }

func mutex(t *testing.T, c *coord.Client, path string, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	m, err := lock.New(c, path, opts...)
	require.NoError(t, err)
	return m
}

func TestGoroutinesOfSeveralClientsExcludeEachOther(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var wg sync.WaitGroup
		inside, rounds, last := 0, 0, int64(0)
		for range 3 {
			m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
			for range 4 {
				wg.Go(func() {
					for range 10 {
						h, err := m.Acquire(t.Context())
						if !assert.NoError(t, err) {
							return
						}
						// Unsynchronised on purpose: the race detector judges,
						// too.
						inside++
						rounds++
						assert.Equal(t, 1, inside)
						assert.Greater(t, h.Token(), last)
						last = h.Token()
						inside--
						assert.NoError(t, h.Release(t.Context()))
					}
				})
			}
		}
		wg.Wait()
		require.Equal(t, 120, rounds)
	})
}

func TestTryAcquireFailsAtOnceWhenTheLockIsHeld(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"))
		h := coordtest.Acquire(t, m)
		require.ErrorIs(t, coordtest.Err(m.TryAcquire(t.Context())), coord.ErrBusy)
		require.NoError(t, h.Release(t.Context()))
		h = coordtest.Call(t, m.TryAcquire)
		require.NoError(t, h.Release(t.Context()))
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
	})
}
