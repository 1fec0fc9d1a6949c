package coordtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// T is the session timeout in bubbles, Tick the server's.
const (
	T    = 30 * time.Second
	Tick = 2 * time.Second
)

// patience bounds the time of a test in a bubble: a test that hangs fails.
const patience = 100 * time.Hour

// Bubble is a test in virtual time, and its server.
type Bubble struct {
	*testing.T
	Server *zkembed.Server
	ctx    context.Context
}

// InBubble runs f in a testing/synctest bubble with an embedded server. When
// all the clients are closed and their sessions over, neither an ephemeral node
// nor a watch may be left.
func InBubble(t *testing.T, f func(b Bubble), opts ...zkembed.Option) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		opts = append([]zkembed.Option{zkembed.WithAddr(""), zkembed.WithTick(Tick), zkembed.WithReaper(0)}, opts...)
		server, err := zkembed.Start(opts...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Close()) })
		t.Cleanup(func() { leftover(t, server) })
		f(Bubble{t, server, Within(t, patience)})
	})
}

// leftover fails the test if anything of a session is left.
func leftover(t *testing.T, server *zkembed.Server) {
	if t.Failed() {
		return
	}
	time.Sleep(2 * T) // for sessions whose closing did not arrive
	for _, n := range server.Nodes() {
		require.Zero(t, n.Stat.EphemeralOwner, "%s is left behind", n.Path)
	}
	require.Zero(t, server.WatchCount(), "watches left: %q", server.Watched())
}

// Context ends when the test does, or when its patience does.
func (b Bubble) Context() context.Context { return b.ctx }

// Within returns a context that ends like [Bubble.Context], and after a time.
func (b Bubble) Within(d time.Duration) context.Context { return Within(b, d) }

// Open returns a client of the bubble's server that is closed with the test.
func (b Bubble) Open(opts ...coord.Option) *coord.Client {
	b.Helper()
	opts = append([]coord.Option{
		coord.WithSessionTimeout(T), coord.WithDialer(b.Server.DialContext),
	}, opts...)
	c, err := coord.Open(b.Context(), b.Server.ConnectString(), opts...)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	return c
}

// Hold returns what a call has acquired. The test's end releases the hold, if
// the test does not.
func (b Bubble) Hold(h *coord.Hold, err error) *coord.Hold {
	b.Helper()
	require.NoError(b, err)
	b.Cleanup(func() {
		if !errors.Is(h.Err(), coord.ErrReleased) {
			require.NoError(b, h.Release(context.Background()))
		}
	})
	return h
}

// Foreign puts a contender of Kazoo's dialect before all others in a directory,
// and returns what removes it.
func (b Bubble) Foreign(dir string) (remove func()) {
	b.Helper()
	c, node := b.Open(), dir+"/0123456789abcdef0123456789abcdef__lock__0000000000"
	require.NoError(b, c.Create(b.Context(), node, nil))
	return func() { require.NoError(b, c.Delete(b.Context(), node, -1)) }
}

// Close closes clients before the test ends.
func (b Bubble) Close(clients ...*coord.Client) {
	b.Helper()
	for _, c := range clients {
		require.NoError(b, c.Close(context.Background()))
	}
}
