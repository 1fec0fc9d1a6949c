package rwlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func rw(t *testing.T, c *coord.Client, path string, opts ...rwlock.Option) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, path, opts...)
	require.NoError(t, err)
	return l
}

// acquirer is a side of the lock, or a mutex.
type acquirer interface {
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

func release(t *testing.T, holds ...*coord.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Release(coordtest.Limited(t)))
	}
}

// grant is what came of an acquire in the background.
type grant struct {
	hold *coord.Hold
	err  error
}

// queue acquires in the background and returns when the claim stands in line,
// as the nth.
func queue(t *testing.T, w *zktest.World, ctx context.Context, path string, n int, a acquirer) <-chan grant {
	t.Helper()
	granted := make(chan grant, 1)
	go func() {
		h, err := a.Acquire(ctx)
		granted <- grant{h, err}
	}()
	lined(t, w, path, n)
	return granted
}

// lined waits until n nodes stand in the line.
func lined(t *testing.T, w *zktest.World, path string, n int) {
	t.Helper()
	var names []string
	zktest.Eventually(t, coordtest.Soon, func() bool {
		names, _, _ = w.Admin().Children(path)
		return len(names) == n
	}, "%d nodes in line", n)
}

// turn waits for a grant.
func turn(t *testing.T, granted <-chan grant) *coord.Hold {
	t.Helper()
	g := zktest.Receive(t, coordtest.Soon, granted, "a turn")
	require.NoError(t, g.err)
	return g.hold
}

// waiting requires that nothing was granted. What would grant must have been
// answered by then: see settled.
func waiting(t *testing.T, granted ...<-chan grant) {
	t.Helper()
	for _, g := range granted {
		select {
		case got := <-g:
			t.Fatalf("granted or failed before its turn: %+v", got)
		default:
		}
	}
}
