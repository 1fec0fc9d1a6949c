package rwlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestDoHoldsWhileTheFunctionRuns(t *testing.T) {
	each(t, func(s scene) {
		l, other := s.lock(), s.lock()
		err := l.DoWrite(coordtest.Limited(s.T), func(ctx context.Context, h *coord.Hold) error {
			require.Positive(s, h.Token())
			require.ErrorIs(s, coordtest.Err(other.TryAcquireRead(ctx)), coord.ErrBusy)
			r, err := rwlock.Downgrade(ctx, h)
			require.NoError(s, err)
			require.NoError(s, other.DoRead(coordtest.Limited(s.T), func(context.Context, *coord.Hold) error { return nil }))
			return r.Release(coordtest.Limited(s.T))
		})
		require.NoError(s, err)
		require.Empty(s, s.line())

		err = l.DoRead(coordtest.Limited(s.T), func(ctx context.Context, h *coord.Hold) error {
			require.NoError(s, s.w.Admin().Delete(h.Node(), -1))
			zktest.Receive(s, coordtest.Soon, ctx.Done(), "the context ends with the hold")
			return nil
		})
		require.ErrorIs(s, err, coord.ErrLost, "what the function did may not have been protected")
	})
}

func TestWhatCannotBeRightIsRefusedAtOnce(t *testing.T) {
	c := coordtest.Open(t, zktest.NewEmbedded(t).ConnectString())
	for path, message := range map[string]string{
		"": "empty", "lock": "start with /", "/": "root", "/a/": "end with /", "/a//b": "empty", "/a/../b": `".."`,
		"/a\x00": "does not allow",
	} {
		_, err := rwlock.New(c, path)
		require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
		require.ErrorContains(t, err, message, "%q", path)
	}
	require.ErrorIs(t, coordtest.Err(rwlock.New(nil, "/lock")), coord.ErrInvalid)
	require.ErrorIs(t, coordtest.Err(rwlock.New(c, "/lock", nil)), coord.ErrInvalid)
}

func mutex(t *testing.T, c *coord.Client, path string, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	m, err := lock.New(c, path, opts...)
	require.NoError(t, err)
	return m
}

// scene is one lock and the claims in its line, in order.
type scene struct {
	*testing.T
	w    *zktest.World
	path string
}

func each(t *testing.T, f func(s scene)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, w *zktest.World) { f(scene{t, w, w.Path("lock")}) })
}

// lock returns the lock as another client sees it.
func (s scene) lock(opts ...rwlock.Option) *rwlock.Lock {
	s.Helper()
	return rw(s.T, coordtest.Open(s.T, s.w.ConnectString()), s.path, opts...)
}

func (s scene) mutex() *lock.Mutex {
	s.Helper()
	return mutex(s.T, coordtest.Open(s.T, s.w.ConnectString()), s.path)
}

// joins acquires in the background and returns when the claim stands at the
// end of the line.
func (s scene) joins(a acquirer) <-chan grant {
	s.Helper()
	return s.queue(coordtest.Limited(s.T), a)
}

// queue is joins with the waiter's context.
func (s scene) queue(ctx context.Context, a acquirer) <-chan grant {
	s.Helper()
	n := len(s.line()) + 1
	granted := coordtest.Begin(ctx, a.Acquire)
	coordtest.AwaitChildren(s, s.w, s.path, n)
	return granted
}

// inTurn requires that waiters are granted one after the other.
func (s scene) inTurn(waiters ...<-chan grant) {
	s.Helper()
	for i, next := range waiters {
		h := coordtest.Had(s, next)
		waiting(s.T, waiters[i+1:]...)
		release(s.T, h)
	}
}

// line lists the nodes in their order.
func (s scene) line() []string {
	s.Helper()
	names, _, _ := s.w.Admin().Children(s.path)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(digits(a), digits(b)) })
	return names
}

func digits(name string) string { return name[len(name)-10:] }

// watch waits until the given places of the line are watched, from 0. A waiter
// watches its own node and those it waits for: once it does, it has looked, and
// found that its turn has not come. (A hold watches its own node, too, after a
// while.)
func (s scene) watch(line []string, places ...int) {
	s.Helper()
	zktest.Eventually(s, coordtest.Soon, func() bool {
		watched := s.w.Watched()
		return !slices.ContainsFunc(places, func(at int) bool { return !slices.Contains(watched, s.path+"/"+line[at]) })
	}, "the nodes at %v of %q are watched", places, line)
}

func TestMain(m *testing.M) { zktest.Main(m) }
