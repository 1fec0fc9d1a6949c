package doublebarrier_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// soon is how long anything may take that should happen at once, on a busy
// machine.
const soon = 20 * time.Second

// steady is a session time-out that a busy machine can keep. Where a session has
// to end, the tests end it.
const steady = 20 * time.Second

// open returns a client of the servers that is closed with the test.
func open(t *testing.T, servers string, opts ...coord.Option) *coord.Client {
	t.Helper()
	opts = append([]coord.Option{coord.WithSessionTimeout(steady), coord.WithTick(zktest.DefaultTick)}, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	c, err := coord.Open(ctx, servers, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func barrier(t testing.TB, c *coord.Client, path string, n int, opts ...doublebarrier.Option) *doublebarrier.Barrier {
	t.Helper()
	b, err := doublebarrier.New(c, path, n, opts...)
	require.NoError(t, err)
	return b
}

// outcome is what a call in the background came to.
type outcome[T any] struct {
	value T
	err   error
}

// entering calls Enter in the background.
func entering(ctx context.Context, b *doublebarrier.Barrier) <-chan outcome[*doublebarrier.Member] {
	done := make(chan outcome[*doublebarrier.Member], 1)
	go func() {
		m, err := b.Enter(ctx)
		done <- outcome[*doublebarrier.Member]{m, err}
	}()
	return done
}

// leaving calls Leave in the background.
func leaving(ctx context.Context, m *doublebarrier.Member) <-chan error {
	done := make(chan error, 1)
	go func() { done <- m.Leave(ctx) }()
	return done
}

func entered(t testing.TB, entering <-chan outcome[*doublebarrier.Member]) *doublebarrier.Member {
	t.Helper()
	o := zktest.Receive(t, soon, entering, "a member enters")
	require.NoError(t, o.err)
	return o.value
}

// round lets all the barriers' members enter together and returns them by
// index.
func round(t testing.TB, barriers ...*doublebarrier.Barrier) []*doublebarrier.Member {
	t.Helper()
	var all []<-chan outcome[*doublebarrier.Member]
	for _, b := range barriers {
		all = append(all, entering(t.Context(), b))
	}
	members := make([]*doublebarrier.Member, len(all))
	for _, e := range all {
		m := entered(t, e)
		require.Nil(t, members[m.Index()], "two members with one index")
		members[m.Index()] = m
	}
	return members
}

// leaveAll lets all members leave together and returns what Leave told each.
func leaveAll(t testing.TB, members ...*doublebarrier.Member) []error {
	t.Helper()
	var all []<-chan error
	for _, m := range members {
		all = append(all, leaving(t.Context(), m))
	}
	var told []error
	for _, l := range all {
		told = append(told, zktest.Receive(t, soon, l, "a member leaves"))
	}
	return told
}

// waiting waits until n members wait for a round to begin.
func waiting(t testing.TB, b *doublebarrier.Barrier, n int) {
	t.Helper()
	zktest.Eventually(t, soon, func() bool {
		s, err := b.Status(t.Context())
		return err == nil && len(s.Waiting) == n
	}, "%d members wait", n)
}

// pending fails the test if a call has ended that must wait for others.
func pending[T any](t testing.TB, c <-chan T, what string) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%s: %v", what, v)
	default:
	}
}

// T is the session time-out in bubbles.
const T = 30 * time.Second

// bubble is a server in virtual time.
type bubble struct {
	*testing.T
	srv *zkembed.Server
	ctx context.Context
}

// patience is how long a test in a bubble may take, so that whoever hangs fails.
const patience = 2 * time.Hour

func newBubble(t *testing.T, opts ...zkembed.Option) bubble {
	srv, err := zkembed.Start(append(opts, zkembed.WithAddr(""), zkembed.WithReaper(0))...)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return bubble{t, srv, ctx}
}

// Context ends when the patience does.
func (b bubble) Context() context.Context { return b.ctx }

func inBubble(t *testing.T, f func(t *testing.T, b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		srv := b.srv
		defer func() { require.NoError(t, srv.Close()) }()
		f(t, b)
		time.Sleep(2 * T) // for sessions whose goodbye did not arrive
		for _, n := range srv.Nodes() {
			require.Zero(t, n.Stat.EphemeralOwner, "%s is left behind", n.Path)
		}
		require.Zero(t, srv.WatchCount(), "watches left: %q", srv.Watched())
	})
}

func (b bubble) open(opts ...coord.Option) *coord.Client {
	b.Helper()
	opts = append([]coord.Option{coord.WithSessionTimeout(T), coord.WithDialer(b.dial)}, opts...)
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), opts...)
	require.NoError(b, err)
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
