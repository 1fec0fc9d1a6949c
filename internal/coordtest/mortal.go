package coordtest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Mortal returns a client, and what kills it as if its process had died: its
// connections end without a word, and the server ends its session. What the
// client's callers still wait for fails.
func Mortal(t testing.TB, server *zkembed.Server, opts ...coord.Option) (c *coord.Client, kill func()) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	dead := false
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return nil, errors.New("killed")
		}
		conn, err := server.DialContext(ctx, network, addr)
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}
	c = Open(t, server.ConnectString(), append([]coord.Option{coord.WithDialer(dial)}, opts...)...)
	return c, func() {
		session := c.Info().SessionID
		mu.Lock()
		dead = true
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		require.NoError(t, server.ExpireSession(session))
		over, end := context.WithCancel(context.Background())
		end()
		_ = c.Close(over)
	}
}
