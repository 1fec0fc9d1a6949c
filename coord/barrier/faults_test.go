package barrier_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAWaiterThatWasCutOffSeesTheRemoval(t *testing.T) {
	cutOff(t, func(t *testing.T, _ func(), b *barrier.Barrier) {
		require.NoError(t, b.Open(coordtest.Limited(t)))
	})
}

func TestAWaiterThatWasCutOffSeesTheRemovalThoughTheBarrierIsClosedAgain(t *testing.T) {
	cutOff(t, func(t *testing.T, _ func(), b *barrier.Barrier) {
		require.NoError(t, b.Open(coordtest.Limited(t)))
		require.NoError(t, b.Set(coordtest.Limited(t)))
	})
}

func TestAWaiterSeesARemovalBetweenItsSessions(t *testing.T) {
	cutOff(t, func(t *testing.T, expire func(), b *barrier.Barrier) {
		expire()
		require.NoError(t, b.Open(coordtest.Limited(t)))
		require.NoError(t, b.Set(coordtest.Limited(t)))
	})
}

// cutOff does something to the waiter's session and to the barrier while the
// waiter has no connection.
func cutOff(t *testing.T, do func(t *testing.T, expire func(), b *barrier.Barrier)) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		other := at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, other.Set(coordtest.Limited(t)))
		p := w.Proxy()
		c := coordtest.Open(t, p.Addr())
		passed := waiting(t, w, t.Context(), at(t, c, path), path)
		_, _, err := c.Exists(coordtest.Limited(t), path) // answered after what the waiter had asked
		require.NoError(t, err)
		p.Refuse()
		require.Positive(t, p.CutAll())
		do(t, func() { w.ExpireSession(c.Info().SessionID) }, other)
		require.Empty(t, passed)
		p.Heal()
		passes(t, passed)
		require.NoError(t, other.Open(coordtest.Limited(t)))
	})
}

func TestAWaiterWaitsOnInANewSession(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		over := make(chan struct{}, 10)
		c := coordtest.Open(t, w.ConnectString(), coord.WithObserver(func(e event.Event) {
			if e.Kind == event.SessionOver {
				over <- struct{}{}
			}
		}))
		b, other := at(t, c, path), at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, other.Set(coordtest.Limited(t)))
		passed := waiting(t, w, t.Context(), b, path)
		w.ExpireSession(c.Info().SessionID)
		zktest.Receive(t, coordtest.Soon, over, "the end of the session")
		zktest.Eventually(t, coordtest.Soon, func() bool { return watchers(w, path) == 1 }, "a watch in the new session")
		require.Empty(t, passed, "passed a closed barrier")
		require.NoError(t, other.Open(coordtest.Limited(t)))
		passes(t, passed)
	})
}

func TestALostRequestOrReplyIsMadeGood(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		zktest.Each(t, func(t *testing.T, w *zktest.World) {
			path, p := w.Path("barrier"), w.Proxy()
			b := at(t, coordtest.Open(t, p.Addr()), path)
			require.NoError(t, b.Set(coordtest.Limited(t))) // makes the parent
			require.NoError(t, b.Open(coordtest.Limited(t)))
			lost := p.Inject(proxy.Fault{Path: path, Do: action})
			require.NoError(t, b.Set(coordtest.Limited(t)))
			require.Equal(t, 1, lost.Fired())
			exists, _, err := w.Admin().Exists(path)
			require.NoError(t, err)
			require.True(t, exists)
			lost = p.Inject(proxy.Fault{Path: path, Do: action})
			require.NoError(t, b.Open(coordtest.Limited(t)))
			require.Equal(t, 1, lost.Fired())
			lost = p.Inject(proxy.Fault{Path: path, Do: action})
			require.NoError(t, b.Wait(coordtest.Limited(t)))
			require.Equal(t, 1, lost.Fired())
		})
	})
}

// The server may be behind; a wait that begins after Set has returned must wait
// all the same, and must not take an opening that was over before for a new
// one.
func TestAWaiterAtAServerThatLagsDoesNotPass(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := zktest.NewEmbedded(t)
		path, srv := w.Path("barrier"), w.Embedded()
		other, late := at(t, coordtest.Open(t, w.ConnectString()), path), coordtest.Open(t, w.ConnectString())
		if again {
			require.NoError(t, other.Set(coordtest.Limited(t)))
		}
		follower := srv.AddFollower(time.Minute, late.Info().SessionID)
		if again {
			require.NoError(t, other.Open(coordtest.Limited(t)))
		}
		require.NoError(t, other.Set(coordtest.Limited(t)))
		require.Less(t, follower.Zxid(), srv.Zxid(), "the follower does not lag")
		before := srv.SessionCounts(late.Info().SessionID).Total()
		b := at(t, late, path)
		passed := coordtest.Go(func() error { return b.Wait(coordtest.Limited(t)) })
		zktest.Eventually(t, coordtest.Soon,
			func() bool { return srv.SessionCounts(late.Info().SessionID).Total() > before }, "a request")
		follower.Stop() // it has caught up
		zktest.Eventually(t, coordtest.Soon, func() bool {
			require.Empty(t, passed, "passed a closed barrier")
			return watchers(w, path) == 1
		}, "a watch on the barrier")
		require.Empty(t, passed)
		require.NoError(t, other.Open(coordtest.Limited(t)))
		passes(t, passed)
	}
}

func TestAWaiterThatWasAwayWhileTheBarrierWasOpenPasses(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		passed, _ := openedWhileAway(b, func(session int64) { require.NoError(b, b.Server.DropConn(session)) })
		require.NoError(b, <-passed)
	})
}

// It has not heard of the barrier yet when its connection is lost: it cannot
// know that this is another one.
func TestAnOpeningThatIsOverBeforeTheWaitersFirstAnswerGoesByUnnoticed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b", Times: 1},
			zkembed.LoseReply())
		passed, there := openedWhileAway(b, func(int64) { require.Equal(b, 1, lost.Fired()) })
		time.Sleep(coordtest.T)
		require.Empty(b, passed)
		require.NoError(b, there.Open(b.Context()))
		require.NoError(b, <-passed)
	})
}

// openedWhileAway has a client wait, which is away, once its session's
// connection is cut, while the barrier is opened and closed again, and is back
// now.
func openedWhileAway(b coordtest.Bubble, cut func(session int64)) (passed <-chan error, there *barrier.Barrier) {
	b.Helper()
	var away atomic.Bool
	waiter, other := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return b.Server.DialContext(ctx, network, addr)
	})), b.Open()
	there = at(b, other, "/b")
	require.NoError(b, there.Set(b.Context()))
	session := waiter.Info().SessionID
	waits, ctx := at(b, waiter, "/b"), b.Within(time.Hour)
	passed = coordtest.Go(func() error { return waits.Wait(ctx) })
	away.Store(true)
	synctest.Wait()
	cut(session)
	require.NoError(b, there.Open(b.Context()))
	require.NoError(b, there.Set(b.Context()))
	require.Empty(b, passed)
	away.Store(false)
	return passed, there
}

func TestClosedReportsWhetherTheBarrierIsClosed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		gate := at(b, b.Open(), "/b")
		for _, change := range []struct {
			make   func(context.Context) error
			closed bool
		}{{gate.Open, false}, {gate.Set, true}, {gate.Set, true}, {gate.Open, false}} {
			require.NoError(b, change.make(b.Context()))
			closed := coordtest.Call(b, gate.Closed)
			require.Equal(b, change.closed, closed)
		}
	})
}

// A container without children is deleted by the servers: a barrier that were
// one would open by itself.
func TestTheParentOfAnotherBarrierIsNoBarrierAndNoWaitPassesOneThatWasSet(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		phase, job := at(b, c, "/job/phase1"), at(b, c, "/job")
		require.NoError(b, phase.Set(b.Context()))
		require.ErrorIs(b, job.Set(b.Context()), barrier.ErrNoBarrier)
		require.NoError(b, phase.Open(b.Context()))
		set := job.Set(b.Context())
		require.ErrorIs(b, set, barrier.ErrNoBarrier)
		require.ErrorContains(b, set, "/job")
		require.Equal(b, 1, b.Server.Reap())
		require.NoError(b, job.Set(b.Context()), "now the path is free")
		require.Zero(b, b.Server.Reap())
		require.ErrorIs(b, job.Wait(b.Within(time.Hour)), context.DeadlineExceeded)
		require.NoError(b, job.Open(b.Context()))
	})
}

func TestANodeThatIsDeletedWhileTheBarrierIsSetIsMadeAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		gate := at(b, b.Open(), "/b")
		once := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2},
			zkembed.ReplyError(zkembed.CodeNodeExists))
		require.NoError(b, gate.Set(b.Context()))
		require.Equal(b, 2, once.Fired())
		require.True(b, coordtest.Call(b, gate.Closed))
	})
}
