package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF11AServerIsKilledAndBackWithinTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		s.w.SetTimeout(5 * T)
		// A JVM needs a moment to start.
		c := s.client(coord.WithSessionTimeout(5 * T))
		h := s.acquire(c)
		token := h.Token()
		s.w.Crash()
		s.w.Recover()
		zktest.Eventually(s, patience, func() bool { return c.Flush(s.Context()) == nil }, "the client does not come back")
		require.NoError(s, h.Err())
		require.Equal(s, token, h.Token())
		s.isSoleHolder(h)
		s.release(h)
	})
}

func TestF12AServerIsDownForLongerThanTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Crash()
		deadline := h.Deadline()
		err := s.lost(h, patience)
		require.ErrorIs(s, err, coord.ErrWindowOver)
		require.False(s, time.Now().Before(deadline), "lost before the window was over")
		require.Less(s, time.Since(deadline), schedulingSlack, "lost too late")
		zktest.Eventually(s, patience, func() bool { return time.Since(deadline) > T }, "time stands still")
		s.w.Recover()
		s.release(h)
		s.release(s.acquire(c))
	})
}

func TestF13AServerStopsForHalfTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		waiter := s.start(context.Background(), c)
		zktest.Eventually(s, patience, func() bool { return time.Since(frozen) > T/2 }, "time stands still")
		require.Empty(s, waiter)
		s.w.Thaw()
		require.NoError(s, c.Flush(s.Context()))
		require.NoError(s, h.Err())
		s.release(h)
		s.release(s.granted(waiter))
	})
}

func TestF13AServerStopsForThreeTimesTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), frozen.Add(T/2))
		defer cancel()
		s.fails(s.start(ctx, c), frozen.Add(T/2))
		deadline := h.Deadline()
		require.ErrorIs(s, s.lost(h, patience), coord.ErrWindowOver)
		require.Less(s, time.Since(deadline), schedulingSlack, "lost too late")
		zktest.Eventually(s, patience, func() bool { return time.Since(frozen) > 3*T }, "time stands still")
		waiter := s.start(context.Background(), c)
		s.w.Thaw()
		next := s.granted(waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

// A server that forgot everything refuses clients that have seen more than it
// has. Only a connection without a past helps.
func TestF20AServerLosesItsData(t *testing.T) {
	onReal(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		old := h.Session()
		ended := make(chan time.Time, 1)
		go func() { <-h.Done(); ended <- time.Now() }()
		require.NoError(s, s.w.Real().WipeAndRestart())
		wiped := time.Now()
		s.lost(h, patience)
		require.Less(s, (<-ended).Sub(h.Deadline()), schedulingSlack, "lost after the end of the window")
		next := s.acquire(c)
		require.Less(s, time.Since(wiped), T+5*time.Second)
		require.NotEqual(s, old, next.Session())
		s.release(next)
		s.release(h)
	})
}

// Some servers answer a client whose session is gone by giving it another.
func TestF21AServerGivesAnotherSessionInsteadOfSayingExpired(t *testing.T) {
	each(t, func(s scene) {
		over := make(chan struct{}, 1)
		c := s.behind(coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.SessionOver {
				select {
				case over <- struct{}{}:
				default:
				}
			}
		}))
		h := s.acquire(c)
		p := s.w.Proxy()
		forgotten := p.Inject(proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.ForgetSession})
		require.Equal(s, 1, p.CutAll())
		zktest.Receive(s, patience, forgotten.First(), "the client does not connect again")
		zktest.Eventually(s, patience, func() bool { return len(p.Sessions()) >= 2 }, "the server gives no other session")
		given := time.Now()
		require.ErrorIs(s, s.lost(h, patience), coord.ErrSessionExpired)
		require.Less(s, time.Since(given), 100*time.Millisecond+schedulingSlack)
		zktest.Receive(s, patience, over, "the observer does not hear of it")
		next := s.acquire(c)
		require.NotEqual(s, h.Session(), next.Session())
		require.Greater(s, next.Token(), h.Token())
		require.Equal(s, 1, forgotten.Fired())
		s.release(next)
	})
}
