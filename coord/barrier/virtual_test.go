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
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAWaiterThatWasAwayWhileTheBarrierWasOpenPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""))
		require.NoError(t, err)
		defer func() { require.NoError(t, srv.Close()) }()
		var away atomic.Bool
		open := func(away *atomic.Bool) *coord.Client {
			c, err := coord.Open(t.Context(), srv.ConnectString(), coord.WithDialer(func(_ context.Context, network, addr string) (net.Conn, error) {
				if away.Load() {
					return nil, syscall.ECONNREFUSED
				}
				return srv.Dial(network, addr, time.Second)
			}))
			require.NoError(t, err)
			return c
		}
		waiter, other := open(&away), open(new(atomic.Bool))
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
		require.NoError(t, srv.DropConn(waiter.SessionID()))
		require.NoError(t, there.Remove(t.Context()))
		require.NoError(t, there.Set(t.Context()))
		require.Empty(t, passed)
		away.Store(false)
		require.NoError(t, <-passed)
		require.NoError(t, waiter.Close(context.Background()))
		require.NoError(t, other.Close(context.Background()))
	})
}
