package doublebarrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// steady is a session time-out that a busy machine can keep. Where a session
// has to end, the tests end it.
const steady = 20 * time.Second

// open returns a client of the servers that is closed with the test.
func open(t *testing.T, servers string, opts ...coord.Option) *coord.Client {
	t.Helper()
	return coordtest.Open(t, servers, append([]coord.Option{coord.WithSessionTimeout(steady)}, opts...)...)
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
	o := zktest.Receive(t, coordtest.Soon, entering, "a member enters")
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
		told = append(told, zktest.Receive(t, coordtest.Soon, l, "a member leaves"))
	}
	return told
}

// waiting waits until n members wait for a round to begin.
func waiting(t testing.TB, b *doublebarrier.Barrier, n int) {
	t.Helper()
	zktest.Eventually(t, coordtest.Soon, func() bool {
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

const T = coordtest.T

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(t *testing.T, b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(b.T, bubble{b}) }, opts...)
}
