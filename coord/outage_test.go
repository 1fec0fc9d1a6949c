package coord_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// leaving is for a client that reaches no server while it is away.
func (b bubble) leaving(away *atomic.Bool) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return b.Server.DialContext(ctx, network, addr)
	})
}

// A server that has lost its data turns away every client that has seen more
// than it has, and never says that the session is over.
func TestASessionThatNoServerConfirmsAnyMoreIsReplacedByAnother(t *testing.T) {
	inBubble(t, func(b bubble) {
		wiped, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(tick))
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(b, wiped.Close()) })
		var server atomic.Pointer[zkembed.Server]
		server.Store(b.Server)
		c := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return server.Load().DialContext(ctx, network, addr)
		}))
		h := b.acquire(c)
		require.Greater(t, b.Server.Zxid(), wiped.Zxid())
		b.Server.Stop()
		server.Store(wiped)
		<-h.Done()
		ctx, cancel := context.WithTimeout(b.Context(), T)
		defer cancel()
		next, err := c.Acquire(ctx, mutex, first)
		require.NoError(t, err)
		require.NoError(t, next.Err())
		require.NoError(t, next.Release(b.Context()))
		b.Close(c)
		b.Server.Resume() // so that the first session's node goes
	})
}

// The window leaves two hundredths of the session time-out for clocks that run
// at different speeds, and for acting on its end.
func TestAHoldEndsSomeTimeBeforeTheServerMayEndTheSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		cut := b.Server.Partition(zkembed.Cut{})
		begun := time.Now() // the session is not younger
		<-h.Done()
		require.LessOrEqual(t, time.Since(begun), T*98/100)
		cut.Heal()
	})
}

// A turn that came while the connection was lost is found by looking: the
// client library is not to set the old watches again, and this server would not
// let it.
func TestAWaiterThatWasCutOffAtItsTurnLooksAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		holder, waiter := b.Open(), b.Open(b.leaving(&away))
		h := b.acquire(holder)
		waiting := b.acquireLater(waiter, mutex)
		synctest.Wait()
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpSetWatches, zkembed.OpSetWatches2}}, zkembed.ReplyError(zkembed.CodeUnimplemented))
		away.Store(true)
		require.NoError(t, b.Server.DropConn(waiter.SessionID()))
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Second)
		require.Empty(t, waiting)
		away.Store(false)
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Release(b.Context()))
	})
}

func TestAnAcquireThatIsGivenUpBeforeTheReplyToItsCreateLeavesNoNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, b.acquire(c).Release(b.Context()))
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/lock/", Times: 1}, zkembed.DelayReply(time.Second))
		ctx, cancel := context.WithTimeout(b.Context(), time.Second/2)
		defer cancel()
		_, err := c.Acquire(ctx, mutex, first)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, slow.Fired())
		require.Equal(t, 1, b.owned(c.SessionID()))
		time.Sleep(time.Second)
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestADeleteThatIsLostIsMadeAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 2}, zkembed.Drop())
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 2, lost.Fired())
		require.Zero(t, b.owned(h.Session()))
	})
}

// A transaction that waits for a connection can come after the deletion of the
// lost hold's node.
func TestATransactionOverAnOutageReportsThatTheHoldWasLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/fence", nil))
		late := 0
		for range 30 {
			h := b.acquire(c)
			cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
			require.NoError(b, b.Server.DropConn(h.Session()))
			synctest.Wait()
			failed := make(chan error, 1)
			go func() {
				_, err := h.Txn(b.Context(), coord.SetOp("/fence", nil, -1))
				failed <- err
			}()
			synctest.Wait()
			time.Sleep(time.Until(h.Deadline()))
			<-h.Done()
			cut.Heal()
			err := <-failed
			require.NotErrorIs(b, err, coord.ErrReleased)
			if errors.Is(err, coord.ErrLost) {
				late++
			}
		}
		require.Positive(b, late)
	})
}
