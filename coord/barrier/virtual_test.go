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
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

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
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b", Times: 1}, zkembed.LoseReply())
		passed, there := openedWhileAway(b, func(int64) { require.Equal(b, 1, lost.Fired()) })
		time.Sleep(coordtest.T)
		require.Empty(b, passed)
		require.NoError(b, there.Remove(b.Context()))
		require.NoError(b, <-passed)
	})
}

// openedWhileAway has a client wait, which is away, once its session's
// connection is cut, while the barrier is opened and closed again, and is back
// now.
func openedWhileAway(b coordtest.Bubble, cut func(session int64)) (passed chan error, there *barrier.Barrier) {
	b.Helper()
	var away atomic.Bool
	waiter, other := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return b.Server.DialContext(ctx, network, addr)
	})), b.Open()
	there, err := barrier.New(other, "/b")
	require.NoError(b, err)
	require.NoError(b, there.Set(b.Context()))
	session := waiter.SessionID()
	passed = make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), time.Hour)
		defer cancel()
		b, err := barrier.New(waiter, "/b")
		if err == nil {
			err = b.Wait(ctx)
		}
		passed <- err
	}()
	away.Store(true)
	synctest.Wait()
	cut(session)
	require.NoError(b, there.Remove(b.Context()))
	require.NoError(b, there.Set(b.Context()))
	require.Empty(b, passed)
	away.Store(false)
	return passed, there
}

func TestClosedReportsWhetherTheBarrierIsClosed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		gate, err := barrier.New(b.Open(), "/b")
		require.NoError(b, err)
		for _, change := range []struct {
			make   func(context.Context) error
			closed bool
		}{{gate.Remove, false}, {gate.Set, true}, {gate.Set, true}, {gate.Remove, false}} {
			require.NoError(b, change.make(b.Context()))
			closed, err := gate.Closed(b.Context())
			require.NoError(b, err)
			require.Equal(b, change.closed, closed)
		}
	})
}

// A container without children is deleted by the servers: a barrier that were
// one would open by itself.
func TestTheParentOfAnotherBarrierIsNoBarrierAndNoWaitPassesOneThatWasSet(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		gate := func(path string) *barrier.Barrier {
			gate, err := barrier.New(c, path)
			require.NoError(b, err)
			return gate
		}
		phase, job := gate("/job/phase1"), gate("/job")
		require.NoError(b, phase.Set(b.Context()))
		require.ErrorIs(b, job.Set(b.Context()), barrier.ErrNoBarrier)
		require.NoError(b, phase.Remove(b.Context()))
		set := job.Set(b.Context())
		require.ErrorIs(b, set, barrier.ErrNoBarrier)
		require.ErrorContains(b, set, "/job")
		require.Equal(b, 1, b.Server.Reap())
		require.NoError(b, job.Set(b.Context()), "now the path is free")
		require.Zero(b, b.Server.Reap())
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(b, job.Wait(ctx), context.DeadlineExceeded)
		require.NoError(b, job.Remove(b.Context()))
	})
}

func TestANodeThatIsDeletedWhileTheBarrierIsSetIsMadeAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		gate, err := barrier.New(c, "/b")
		require.NoError(b, err)
		once := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2}, zkembed.ReplyError(zkembed.CodeNodeExists))
		require.NoError(b, gate.Set(b.Context()))
		require.Equal(b, 2, once.Fired())
		closed, err := gate.Closed(b.Context())
		require.NoError(b, err)
		require.True(b, closed)
	})
}
