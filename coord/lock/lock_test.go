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
)

func TestMain(m *testing.M) { zktest.Main(m) }

const sessionTimeout = 2 * time.Second

func mutex(t *testing.T, c *coord.Client, path string, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	m, err := lock.New(c, path, opts...)
	require.NoError(t, err)
	return m
}

func acquire(t *testing.T, m *lock.Mutex) *coord.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h, err := m.Acquire(ctx)
	require.NoError(t, err)
	return h
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
						if err != nil {
							t.Error(err)
							return
						}
						// Unsynchronised on purpose: the race detector judges,
						// too.
						inside++
						rounds++
						if inside != 1 || h.Token() <= last {
							t.Errorf("%d inside, token %d after %d", inside, h.Token(), last)
						}
						last = h.Token()
						inside--
						if err := h.Release(t.Context()); err != nil {
							t.Error(err)
						}
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
		h := acquire(t, m)
		_, err := m.TryAcquire(t.Context())
		require.ErrorIs(t, err, coord.ErrBusy)
		require.NoError(t, h.Release(t.Context()))
		h, err = m.TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
	})
}
