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
)

func TestAWaiterThatWasAwayWhileTheBarrierWasOpenPasses(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		t := b.T
		var away atomic.Bool
		waiter, other := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if away.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return b.Server.DialContext(ctx, network, addr)
		})), b.Open()
		there, err := barrier.New(other, "/b")
		require.NoError(t, err)
		require.NoError(t, there.Set(t.Context()))
		passed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Hour)
			defer cancel()
			b, err := barrier.New(waiter, "/b")
			if err == nil {
				err = b.Wait(ctx)
			}
			passed <- err
		}()
		synctest.Wait()
		away.Store(true)
		require.NoError(t, b.Server.DropConn(waiter.SessionID()))
		require.NoError(t, there.Remove(t.Context()))
		require.NoError(t, there.Set(t.Context()))
		require.Empty(t, passed)
		away.Store(false)
		require.NoError(t, <-passed)
	})
}

func TestClosedTellsWhetherTheBarrierIsClosed(t *testing.T) {
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
