package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF11AServerIsKilledAndBackWithinTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		timeout := 5 * T
		if s.w.Backend() != zktest.Embedded {
			timeout = 15 * T // a JVM needs a moment to start, on a busy machine half a minute
		}
		s.w.SetTimeout(timeout)
		var cut atomic.Int32 // how often the connection was lost
		c := s.client(coord.WithSessionTimeout(timeout), coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.SessionDown {
				cut.Add(1)
			}
		}))
		h := s.acquire(c)
		token := h.Token()
		killed := time.Now()
		s.w.Crash()
		if s.w.Backend() == zktest.Embedded {
			s.wait(timeout/4, killed) // a real one takes as long to start
		}
		s.w.Recover()
		zktest.Eventually(s, patience, func() bool { return coordtest.Write(s.Context(), c) == nil }, "the client does not come back")
		down := time.Since(killed)
		s.Logf("down for %v, T = %v", down, timeout)
		require.Positive(s, cut.Load(), "the server was never away")
		require.Less(s, down, timeout, "the server was not back in time")
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
		killed := time.Now()
		s.w.Crash()
		s.endWithTheirWindow(h)
		deadline := time.Now().Add(T / 4)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		s.fails(s.start(ctx, c), deadline)
		s.wait(2*T, killed)
		s.w.Recover()
		s.release(h)
		s.release(s.acquire(c))
	})
}

func TestF13AServerStopsForHalfTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		const timeout = 5 * T // what is left of the window is the machine's
		s.w.SetTimeout(timeout)
		c := s.client(coord.WithSessionTimeout(timeout))
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		waiter := s.start(context.Background(), c)
		ctx, cancel := context.WithDeadline(context.Background(), frozen.Add(T/4))
		defer cancel()
		s.fails(s.start(ctx, c), frozen.Add(T/4))
		short, enough := context.WithTimeout(context.Background(), T/8)
		defer enough()
		require.ErrorIs(s, coordtest.Write(short, c), context.DeadlineExceeded, "the server answers")
		s.wait(timeout/2, frozen)
		require.Empty(s, waiter)
		s.w.Thaw()
		require.NoError(s, coordtest.Write(s.Context(), c))
		require.NoError(s, h.Err())
		next := s.handOver(h, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

// However many requests wait for the server, each ends by its context.
func TestF13AServerStopsForThreeTimesTheSessionTimeout(t *testing.T) {
	eachPrivate(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		s.w.Freeze()
		frozen := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), frozen.Add(T/2))
		defer cancel()
		var hung []<-chan result
		for range 100 {
			hung = append(hung, s.start(ctx, c))
		}
		for _, acquire := range hung {
			s.fails(acquire, frozen.Add(T/2))
		}
		s.waitUntil(h.Deadline())
		require.ErrorIs(s, h.Err(), coord.ErrWindowOver, "Err looks at the clock")
		s.wait(3*T, frozen)
		waiter := s.start(context.Background(), c)
		thawed := time.Now()
		s.w.Thaw()
		next := s.grantedWithin(progress, waiter, thawed)
		require.Greater(s, next.Token(), h.Token())
		s.release(next)
	})
}

// A server that lost its data refuses clients that have seen more than it has.
// Only a new session, which has seen nothing, is accepted.
func TestF20AServerLosesItsData(t *testing.T) {
	onReal(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		old, ended := h.Session(), s.endOf(h)
		require.NoError(s, s.w.Real().WipeAndRestart())
		wiped := time.Now()
		exists, _, err := zktest.Connect(s, s.w.ConnectString(), T).Exists(s.dir())
		require.NoError(s, err)
		require.False(s, exists, "the server remembers")
		s.ends(ended)
		next := s.grantedWithin(T+5*time.Second, s.start(context.Background(), c), wiped)
		require.NotEqual(s, old, next.Session())
		s.release(next)
		s.release(h)
	})
}

// Some servers give a client whose session is gone another one.
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
		type answer struct {
			at      time.Time
			session int64
		}
		given, ended := make(chan answer, 1), s.endOf(h)
		p.Inject(proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.WatchReply, Where: func(f *proxy.Frame) bool {
			select {
			case given <- answer{time.Now(), f.Session}:
			default:
			}
			return true
		}})
		require.Equal(s, 1, p.CutAll())
		zktest.Receive(s, patience, forgotten.First(), "the client does not connect again")
		another := zktest.Receive(s, patience, given, "the server does not answer")
		require.NotZero(s, another.session)
		require.NotEqual(s, h.Session(), another.session, "the server gives no other session")
		s.onTime("lost", another.at, 100*time.Millisecond, s.ends(ended))
		require.ErrorIs(s, h.Err(), coord.ErrSessionExpired)
		zktest.Receive(s, patience, over, "the observer does not hear of it")
		next := s.acquire(c)
		require.NotEqual(s, h.Session(), next.Session())
		require.Greater(s, next.Token(), h.Token())
		require.Equal(s, 1, forgotten.Fired())
		s.release(next)
	})
}
