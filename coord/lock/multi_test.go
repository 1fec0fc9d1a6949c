package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func multi(t *testing.T, locks ...lock.Acquirer) *lock.Multi {
	t.Helper()
	m, err := lock.NewMulti(locks...)
	require.NoError(t, err)
	return m
}

func shared(t *testing.T, c *coord.Client, path string) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, path)
	require.NoError(t, err)
	return l
}

// three returns one multi-lock over a mutex, a read side and a write side.
func three(t *testing.T, w *zktest.World, c *coord.Client) *lock.Multi {
	t.Helper()
	return multi(t, shared(t, c, w.Path("c")).WriteSide(), mutex(t, c, w.Path("a")), shared(t, c, w.Path("b")).ReadSide())
}

// nodes counts the nodes in the line of each path.
func nodes(w *zktest.World, paths ...string) []int {
	counts := make([]int, len(paths))
	for i, p := range paths {
		names, _, _ := w.Admin().Children(w.Path(p))
		counts[i] = len(names)
	}
	return counts
}

func awaitNodes(t *testing.T, w *zktest.World, want []int, paths ...string) {
	t.Helper()
	zktest.Eventually(t, coordtest.Soon, func() bool { return slices.Equal(want, nodes(w, paths...)) }, "%v nodes in %v", want, paths)
}

// acquireAll acquires in the background.
func acquireAll(ctx context.Context, m *lock.Multi) <-chan result {
	done := make(chan result, 1)
	go func() {
		g, err := m.Acquire(ctx)
		done <- result{g, err}
	}()
	return done
}

type result struct {
	group *coord.Group
	err   error
}

func TestAMultiLockHoldsLocksOfAllKindsInTheOrderOfTheirPaths(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c, other := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
		g := coordtest.Acquire(t, three(t, w, c))
		require.NoError(t, g.Err())
		require.Equal(t, []int{1, 1, 1}, nodes(w, "a", "b", "c"))
		holds := g.Holds()
		require.Contains(t, holds[0].Node(), w.Path("a")+"/")
		require.Positive(t, holds[0].Token())
		require.Zero(t, holds[1].Token(), "a reader has none")
		require.Greater(t, holds[2].Token(), holds[0].Token())

		_, err := three(t, w, other).TryAcquire(coordtest.Limited(t))
		require.ErrorIs(t, err, coord.ErrBusy)
		require.ErrorContains(t, err, w.Path("a"), "it says which lock is busy")
		require.ErrorIs(t, coordtest.Err(mutex(t, other, w.Path("a")).TryAcquire(coordtest.Limited(t))), coord.ErrBusy)
		require.ErrorIs(t, coordtest.Err(shared(t, other, w.Path("c")).TryAcquireRead(coordtest.Limited(t))), coord.ErrBusy)
		reads, err := shared(t, other, w.Path("b")).TryAcquireRead(coordtest.Limited(t))
		require.NoError(t, err)

		require.NoError(t, g.Release(coordtest.Limited(t)))
		require.ErrorIs(t, g.Err(), coord.ErrReleased)
		require.NoError(t, reads.Release(coordtest.Limited(t)))
		require.Equal(t, []int{0, 0, 0}, nodes(w, "a", "b", "c"))
	})
}

func TestMultiLocksGivenInDifferentOrdersNeverWaitInACircle(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		orders := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}}
		var inside atomic.Int64
		var wg sync.WaitGroup
		for _, order := range orders {
			c := coordtest.Open(t, w.ConnectString())
			m := multi(t, shared(t, c, w.Path(order[0])).WriteSide(), mutex(t, c, w.Path(order[1])), mutex(t, c, w.Path(order[2])))
			for range 2 {
				wg.Go(func() {
					for range 10 {
						err := m.Do(coordtest.Limited(t), func(context.Context, *coord.Group) error {
							defer inside.Add(-1)
							if n := inside.Add(1); n != 1 {
								t.Errorf("%d hold all the locks", n)
							}
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		require.Equal(t, []int{0, 0, 0}, nodes(w, "a", "b", "c"))
	})
}

func TestAMultiLockThatCannotHaveAllHoldsNone(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c, other := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
		h := coordtest.Acquire(t, mutex(t, other, w.Path("c")))
		_, err := three(t, w, c).TryAcquire(coordtest.Limited(t))
		require.ErrorIs(t, err, coord.ErrBusy)
		require.ErrorContains(t, err, w.Path("c"))
		require.Equal(t, []int{0, 0, 1}, nodes(w, "a", "b", "c"))

		ctx, cancel := context.WithCancel(coordtest.Limited(t))
		done := acquireAll(ctx, three(t, w, c))
		awaitNodes(t, w, []int{1, 1, 2}, "a", "b", "c")
		cancel()
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, done, "the acquire ends").err, context.Canceled)
		awaitNodes(t, w, []int{0, 0, 1}, "a", "b", "c")
		require.NoError(t, h.Release(coordtest.Limited(t)))
	})
}

func TestAMultiLockReturnsAtTheEndOfItsContextAlsoWhenNoServerAnswers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ProxyConnectString())
		arrive := make(chan struct{})
		held := w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: w.Path("b"), Do: proxy.Hold(arrive)})
		ctx, cancel := context.WithCancel(coordtest.Limited(t))
		done := acquireAll(ctx, three(t, w, c))
		zktest.Receive(t, coordtest.Soon, held.First(), "the second lock's create is sent")
		require.Equal(t, []int{1, 0, 0}, nodes(w, "a", "b", "c"))
		cancel()
		err := zktest.Receive(t, coordtest.Soon, done, "the acquire ends while no server answers").err
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []int{1, 0, 0}, nodes(w, "a", "b", "c"), "the servers have not heard of it yet")
		close(arrive)
		awaitNodes(t, w, []int{0, 0, 0}, "a", "b", "c")
	})
}

func TestTheDeadlineOfAMultiLockIsForAllItsLocksTogether(t *testing.T) {
	coordtest.InBubble(t, func(bubble coordtest.Bubble) {
		t := bubble.T
		c, other := bubble.Open(), bubble.Open()
		a := coordtest.Acquire(t, mutex(t, other, "/a"))
		b, err := mutex(t, other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		begun := time.Now()
		done := acquireAll(coordtest.Within(t, 10*time.Second), multi(t, mutex(t, c, "/b"), mutex(t, c, "/a")))
		time.Sleep(6 * time.Second)
		require.NoError(t, a.Release(t.Context()))
		require.ErrorIs(t, (<-done).err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.NoError(t, b.Release(t.Context()))
	})
}

func TestAMultiLockThatLosesALockWhileItWaitsBeginsAgain(t *testing.T) {
	lose := map[string]func(w *zktest.World, c *coord.Client, node string){
		"node deleted":    func(w *zktest.World, _ *coord.Client, node string) { _ = w.Admin().Delete(node, -1) },
		"session expired": func(w *zktest.World, c *coord.Client, _ string) { w.ExpireSession(c.SessionID()) },
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				c, other := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
				h := coordtest.Acquire(t, mutex(t, other, w.Path("b")))
				done := acquireAll(coordtest.Limited(t), multi(t, mutex(t, c, w.Path("a")), mutex(t, c, w.Path("b"))))
				awaitNodes(t, w, []int{1, 2}, "a", "b")
				names, _, err := w.Admin().Children(w.Path("a"))
				require.NoError(t, err)
				first := w.Path("a") + "/" + names[0]
				lose(w, c, first)
				zktest.Eventually(t, coordtest.Soon, func() bool {
					again, _, _ := w.Admin().Children(w.Path("a"))
					return len(again) == 1 && again[0] != names[0]
				}, "the first lock is acquired again")
				require.NoError(t, h.Release(coordtest.Limited(t)))
				got := zktest.Receive(t, coordtest.Soon, done, "all locks")
				require.NoError(t, got.err)
				require.NoError(t, got.group.Err())
				require.NoError(t, got.group.Release(coordtest.Limited(t)))
			})
		})
	}
}

func TestAMultiLockEndsWhenItLosesOneOfItsLocks(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		g := coordtest.Acquire(t, three(t, w, c))
		ctx := g.Context(coordtest.Limited(t))
		lost := g.Holds()[1]
		require.NoError(t, w.Admin().Delete(lost.Node(), -1))
		zktest.Receive(t, coordtest.Soon, g.Done(), "the end of the whole")
		require.ErrorIs(t, g.Err(), coord.ErrLost)
		require.ErrorIs(t, g.Err(), coord.ErrNodeDeleted)
		zktest.Receive(t, coordtest.Soon, ctx.Done(), "the end of its context")
		require.ErrorIs(t, context.Cause(ctx), coord.ErrNodeDeleted)
		require.NoError(t, g.Holds()[0].Err(), "the others are held until released")
		require.NoError(t, g.Release(coordtest.Limited(t)))
		require.ErrorIs(t, g.Err(), coord.ErrLost, "the release does not hide the loss")
	})
}

func TestEveryFailureOfAMultiLockIsReported(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ProxyConnectString())
		g := coordtest.Acquire(t, three(t, w, c))
		arrive := make(chan struct{})
		w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Times: proxy.Always, Do: proxy.Hold(arrive)})
		err := g.Release(coordtest.Within(t, 50*time.Millisecond))
		close(arrive)
		require.ErrorIs(t, err, coord.ErrUnconfirmed)
		var all *multierror.Error
		require.ErrorAs(t, err, &all)
		require.Len(t, all.Errors, 3)
		for i, h := range g.Holds() {
			require.ErrorContains(t, all.Errors[i], h.Node())
		}
		awaitNodes(t, w, []int{0, 0, 0}, "a", "b", "c")
	})
}

func TestWhatAMultiLockCannotGiveUpIsReportedWithWhyItFailed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c, other := coordtest.Open(t, w.ProxyConnectString()), coordtest.Open(t, w.ConnectString())
		h := coordtest.Acquire(t, mutex(t, other, w.Path("c")))
		const noAuth = -102
		w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: w.Path("a"), Do: proxy.Reject(noAuth)})
		_, err := three(t, w, c).TryAcquire(coordtest.Limited(t))
		require.ErrorIs(t, err, coord.ErrBusy)
		require.ErrorIs(t, err, coord.ErrNoAuth)
		require.ErrorContains(t, err, w.Path("a")+"/")
		require.NoError(t, h.Release(coordtest.Limited(t)))
	})
}

func TestAMultiLockThatCannotBeRightIsRefusedAtOnce(t *testing.T) {
	w := zktest.NewEmbedded(t)
	c, other := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
	a, b := mutex(t, c, "/a"), mutex(t, other, "/b")
	for message, locks := range map[string][]lock.Acquirer{
		"no locks":       {},
		"lock 1":         {a, nil},
		"lock 0":         {(*lock.Mutex)(nil)},
		"lock 1 ":        {a, (*rwlock.Side)(nil)},
		"lock 0 ":        {new(lock.Mutex)},
		"/a twice":       {a, mutex(t, c, "/b"), shared(t, c, "/a").ReadSide()},
		"another client": {a, b},
	} {
		m, err := lock.NewMulti(locks...)
		require.ErrorIs(t, err, coord.ErrInvalid)
		require.ErrorContains(t, err, message)
		require.Nil(t, m)
	}
}

func TestTheContextOfAMultiLockCarriesItsHolds(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		again := mutex(t, c, w.Path("a"), lock.Reentrant())
		failed := errors.New("the work failed")
		err := multi(t, again, mutex(t, c, w.Path("b"))).Do(coordtest.Limited(t), func(ctx context.Context, g *coord.Group) error {
			h, err := again.Acquire(ctx)
			require.NoError(t, err)
			require.Equal(t, g.Holds()[0].Node(), h.Node())
			require.NoError(t, h.Release(ctx))
			require.NoError(t, g.Err())
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.Equal(t, []int{0, 0}, nodes(w, "a", "b"))
	})
}
