package lock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
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
	zktest.Eventually(t, coordtest.Soon, func() bool { return slices.Equal(want, nodes(w, paths...)) },
		"%v nodes in %v", want, paths)
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
		reads := coordtest.Call(t, shared(t, other, w.Path("b")).TryAcquireRead)

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
			m := multi(t, shared(t, c, w.Path(order[0])).WriteSide(), mutex(t, c, w.Path(order[1])),
				mutex(t, c, w.Path(order[2])))
			for range 2 {
				wg.Go(func() {
					for range 10 {
						err := m.Do(coordtest.Limited(t), func(context.Context, *hold.Set) error {
							defer inside.Add(-1)
							assert.EqualValues(t, 1, inside.Add(1), "so many hold all the locks")
							return nil
						})
						if !assert.NoError(t, err) {
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
		done := coordtest.Begin(ctx, three(t, w, c).Acquire)
		awaitNodes(t, w, []int{1, 1, 2}, "a", "b", "c")
		cancel()
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, done, "the acquire ends").Err, context.Canceled)
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
		done := coordtest.Begin(ctx, three(t, w, c).Acquire)
		zktest.Receive(t, coordtest.Soon, held.First(), "the second lock's create is sent")
		require.Equal(t, []int{1, 0, 0}, nodes(w, "a", "b", "c"))
		cancel()
		err := zktest.Receive(t, coordtest.Soon, done, "the acquire ends while no server answers").Err
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
		done := coordtest.Begin(coordtest.Within(t, 10*time.Second), multi(t, mutex(t, c, "/b"), mutex(t, c, "/a")).Acquire)
		time.Sleep(6 * time.Second)
		require.NoError(t, a.Release(t.Context()))
		require.ErrorIs(t, (<-done).Err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.NoError(t, b.Release(t.Context()))
	})
}

func TestAMultiLockThatLosesALockWhileItWaitsBeginsAgain(t *testing.T) {
	lose := map[string]func(w *zktest.World, c *coord.Client, node string){
		"node deleted":    func(w *zktest.World, _ *coord.Client, node string) { _ = w.Admin().Delete(node, -1) },
		"session expired": func(w *zktest.World, c *coord.Client, _ string) { w.ExpireSession(c.Info().SessionID) },
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				c, other := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
				h := coordtest.Acquire(t, mutex(t, other, w.Path("b")))
				done := coordtest.Begin(coordtest.Limited(t), multi(t, mutex(t, c, w.Path("a")), mutex(t, c, w.Path("b"))).Acquire)
				awaitNodes(t, w, []int{1, 2}, "a", "b")
				names := coordtest.Children(t, w, w.Path("a"))
				first := w.Path("a") + "/" + names[0]
				lose(w, c, first)
				zktest.Eventually(t, coordtest.Soon, func() bool {
					again, _, _ := w.Admin().Children(w.Path("a"))
					return len(again) == 1 && again[0] != names[0]
				}, "the first lock is acquired again")
				require.NoError(t, h.Release(coordtest.Limited(t)))
				all := coordtest.Had(t, done)
				require.NoError(t, all.Err())
				require.NoError(t, all.Release(coordtest.Limited(t)))
			})
		})
	}
}

func TestEveryFailureOfAMultiLockIsReported(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		g := coordtest.Acquire(t, three(t, w, coordtest.Open(t, w.ProxyConnectString())))
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

// breakAll breaks the claims below a path.
func breakAll(b coordtest.Bubble, path string) {
	b.Helper()
	admin := b.Open()
	for _, n := range b.Server.Nodes() {
		if strings.HasPrefix(n.Path, path+"/") {
			require.NoError(b, inspect.Break(b.Context(), admin, n.Path))
		}
	}
}

// Not as cancelled: the caller's context lives.
func TestATryOfAMultiLockThatLosesALockMeanwhileSaysSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		// A reply that is late would keep the news of the loss, which come
		// behind it.
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: "/b"},
			zkembed.ReplyError(zkembed.CodeThrottledOp))
		tried := coordtest.Go(func() error {
			return coordtest.Err(multi(b.T, mutex(b.T, c, "/a"), mutex(b.T, c, "/b")).TryAcquire(b.Context()))
		})
		time.Sleep(time.Second)
		breakAll(b, "/a")
		err := <-tried
		require.NotZero(b, slow.Fired())
		require.ErrorIs(b, err, coord.ErrNodeDeleted)
		require.NotErrorIs(b, err, context.Canceled)
	})
}

// breaking is a lock whose acquire takes the one acquired before it away, and
// ends the caller's context, before it succeeds.
type breaking struct {
	*lock.Mutex
	breakIt func()
	end     context.CancelFunc
}

func (l breaking) Acquire(ctx context.Context) (*coord.Hold, error) {
	h, err := l.Mutex.Acquire(ctx)
	l.breakIt()
	<-ctx.Done() // with the hold before
	l.end()
	return h, err
}

func TestAMultiLockTellsItsContextsEndOnceAlongWithALoss(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		held := coordtest.Acquire(b, mutex(b.T, c, "/b"))
		_, err := multi(b.T, mutex(b.T, c, "/a"), mutex(b.T, c, "/b")).Acquire(b.Within(time.Second))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Equal(b, 1, strings.Count(err.Error(), context.DeadlineExceeded.Error()), err)
		require.NoError(b, held.Release(b.Context()))

		ctx, cancel := context.WithCancel(b.Context())
		breakIt := func() { breakAll(b, "/a") }
		_, err = multi(b.T, mutex(b.T, c, "/a"), breaking{mutex(b.T, c, "/b"), breakIt, cancel}).Acquire(ctx)
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorIs(b, err, coord.ErrLost)
	})
}

func TestF56AMultiLockThatHasWaitedIsNotRefused(t *testing.T) {
	local := lock.LocalQueue(2, time.Hour)
	type meeting struct {
		held, foreign, lost string
		opts                []lock.Option // of the second
		others              bool          // ask for the second at the same time
	}
	coordtest.InBubbles(t, map[string]meeting{
		"by a lock that it asks for later":      {held: "/a", foreign: "/b"},
		"when it begins again":                  {held: "/b", foreign: "/a", lost: "/a/"},
		"by a local queue":                      {held: "/a", foreign: "/b", opts: []lock.Option{local}},
		"by a local queue that refuses another": {held: "/a", foreign: "/b", opts: []lock.Option{local}, others: true},
	}, func(b coordtest.Bubble, met meeting) {
		c := b.Open()
		h := coordtest.Acquire(b, mutex(b.T, b.Open(), met.held))
		second := mutex(b.T, c, "/b", met.opts...)
		done := coordtest.Begin(b.Within(time.Hour), multi(b.T, mutex(b.T, c, "/a"), second).Acquire)
		time.Sleep(time.Second)
		own := b.Server.Nodes()
		remove := b.Foreign(met.foreign)
		for _, n := range own {
			if met.lost != "" && strings.HasPrefix(n.Path, met.lost) {
				require.NoError(b, inspect.Break(b.Context(), b.Open(), n.Path))
			}
		}
		if met.others {
			b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/b/", Times: 1},
				zkembed.DelayReply(time.Second))
			go func() {
				_, err := second.Acquire(b.Within(time.Hour))
				assert.ErrorIs(b, err, coord.ErrForeign)
			}()
			synctest.Wait()
		}
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(time.Minute)
		require.Empty(b, done)
		remove()
		require.NoError(b, coordtest.Had(b, done).Release(b.Context()))
	})
}

const sessionTimeout = 2 * time.Second
