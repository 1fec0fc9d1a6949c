package coord_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// bubble is a server in virtual time.
type bubble struct {
	*testing.T
	srv *zkembed.Server
}

// T is the session time-out in bubbles, tick the server's.
const (
	T    = 30 * time.Second
	tick = 2 * time.Second
)

func inBubble(t *testing.T, f func(b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(tick), zkembed.WithReaper(0))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, srv.Close()) })
		f(bubble{t, srv})
	})
}

func (b bubble) open(opts ...coord.Option) *coord.Client {
	b.Helper()
	opts = append([]coord.Option{
		coord.WithSessionTimeout(T),
		coord.WithDialer(b.dial),
	}, opts...)
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), opts...)
	require.NoError(b, err)
	b.Cleanup(func() { b.close(c) })
	return c
}

func (b bubble) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	return b.srv.Dial(network, addr, time.Until(deadline))
}

func (b bubble) close(clients ...*coord.Client) {
	b.Helper()
	for _, c := range clients {
		require.NoError(b, c.Close(context.Background()))
	}
}

var mutex = coord.Spec{Line: coord.Line{Dir: "/lock"}, Kind: coord.Lock, Exclusive: true}

func first(_ []coord.Contender, self int) ([]int, bool) {
	if self == 0 {
		return nil, true
	}
	return []int{self - 1}, false
}

func (b bubble) acquire(c *coord.Client) *coord.Hold {
	b.Helper()
	h, err := c.Acquire(b.Context(), mutex, first)
	require.NoError(b, err)
	return h
}

// owned tells how many nodes belong to a session.
func (b bubble) owned(session int64) (n int) {
	for _, node := range b.srv.Nodes() {
		if node.Stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

func ended(h *coord.Hold) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}
