package lock_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAMultiLockThatWaitsAcquiresAgainWhatItLosesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""))
		require.NoError(t, err)
		defer func() { require.NoError(t, srv.Close()) }()
		open := func() *coord.Client {
			c, err := coord.Open(t.Context(), srv.ConnectString(), coord.WithDialer(
				func(_ context.Context, network, addr string) (net.Conn, error) {
					return srv.Dial(network, addr, time.Second)
				}))
			require.NoError(t, err)
			return c
		}
		c, other := open(), open()
		defer func() { require.NoError(t, c.Close(context.Background())) }()
		defer func() { require.NoError(t, other.Close(context.Background())) }()
		first := func() (node string) {
			for _, n := range srv.Nodes() {
				if strings.HasPrefix(n.Path, "/a/") {
					node = n.Path
				}
			}
			return node
		}
		b, err := mutex(t, other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := acquireAll(ctx, multi(t, mutex(t, c, "/a"), mutex(t, c, "/b")))
		time.Sleep(time.Second)
		lost := first()
		require.NoError(t, coord.Break(t.Context(), other, lost))
		time.Sleep(time.Second)
		again := first()
		require.NoError(t, b.Release(t.Context()))
		got := <-done
		require.NoError(t, got.err)
		require.NotEmpty(t, again, "not acquired again before it had the other")
		require.NotEqual(t, lost, again)
		require.NoError(t, got.group.Release(t.Context()))
	})
}
