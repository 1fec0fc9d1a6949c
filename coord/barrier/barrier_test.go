package barrier_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func at(t testing.TB, c *coord.Client, path string) *barrier.Barrier {
	t.Helper()
	b, err := barrier.New(c, path)
	require.NoError(t, err)
	return b
}

// waiting starts a Wait and returns when the server has its watch.
func waiting(t *testing.T, w *zktest.World, ctx context.Context, b *barrier.Barrier, path string) <-chan error {
	t.Helper()
	before := watchers(w, path)
	passed := coordtest.Go(func() error { return b.Wait(ctx) })
	zktest.Eventually(t, coordtest.Soon, func() bool {
		require.Empty(t, passed, "passed, or failed, at a closed barrier")
		return watchers(w, path) > before
	}, "a watch on the barrier")
	return passed
}

func watchers(w *zktest.World, path string) int {
	return len(slices.DeleteFunc(w.Watched(), func(watched string) bool { return watched != path }))
}

func passes(t *testing.T, waits ...<-chan error) {
	t.Helper()
	for _, passed := range waits {
		require.NoError(t, zktest.Receive(t, coordtest.Soon, passed, "the way is open"))
	}
}

func TestARemovalLetsAllThrough(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, own := w.Path("barrier"), coordtest.Open(t, w.ConnectString())
		require.NoError(t, at(t, own, path).Set(t.Context()))
		all := []<-chan error{waiting(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path)}
		for range 3 {
			b := at(t, coordtest.Open(t, w.ConnectString()), path)
			for range 3 {
				all = append(all, coordtest.Go(func() error { return b.Wait(coordtest.Limited(t)) }))
			}
		}
		for _, passed := range all {
			require.Empty(t, passed, "passed a closed barrier")
		}
		require.NoError(t, at(t, own, path).Open(t.Context()))
		passes(t, all...)
	})
}

func TestABarrierThatWasNeverSetIsOpen(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := at(t, coordtest.Open(t, w.ConnectString()), w.Path("a/b"))
		require.NoError(t, b.Wait(coordtest.Limited(t)))
		require.NoError(t, b.Open(coordtest.Limited(t)))
	})
}

func TestToSetOrOpenTwiceIsToDoItOnce(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("deep/down/barrier")
		one, other := at(t, coordtest.Open(t, w.ConnectString()), path), at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, one.Set(coordtest.Limited(t)))
		require.NoError(t, other.Set(coordtest.Limited(t)))
		passed := waiting(t, w, t.Context(), one, path)
		require.NoError(t, other.Open(coordtest.Limited(t)))
		require.NoError(t, one.Open(coordtest.Limited(t)))
		passes(t, passed)
	})
}

func TestTheBarrierOutlivesTheClientThatSetItAndNamesIt(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		setter := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("the-setter"))
		require.NoError(t, at(t, setter, path).Set(coordtest.Limited(t)))
		require.NoError(t, setter.Close(context.Background()))
		data, stat, err := w.Admin().Get(path)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(data), "the-setter "), "%s", data)
		require.Zero(t, stat.EphemeralOwner)
		b := at(t, coordtest.Open(t, w.ConnectString()), path)
		by, since, err := b.SetBy(coordtest.Limited(t))
		require.NoError(t, err)
		require.Equal(t, string(data), by)
		require.EqualValues(t, stat.Ctime, since.UnixMilli())
		passed := waiting(t, w, t.Context(), b, path)
		require.NoError(t, b.Open(coordtest.Limited(t)))
		passes(t, passed)
	})
}

func TestANodeWithChildrenIsNotRemoved(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		b := at(t, c, w.Path("barrier"))
		require.NoError(t, b.Set(coordtest.Limited(t)))
		require.NoError(t, c.Create(coordtest.Limited(t), w.Path("barrier/child"), nil))
		err := b.Open(coordtest.Limited(t))
		require.ErrorIs(t, err, coord.ErrNotEmpty)
		require.ErrorContains(t, err, w.Path("barrier"))
	})
}

func TestWhatIsNoBarrierIsNotTakenForOne(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		refused := func(path, why string) {
			t.Helper()
			err := at(t, c, w.Path(path)).Set(coordtest.Limited(t))
			require.ErrorIs(t, err, barrier.ErrNoBarrier, path)
			require.ErrorContains(t, err, "set "+w.Path(path), path)
			require.ErrorContains(t, err, why, path)
		}
		require.NoError(t, c.EnsureDir(coordtest.Limited(t), w.Path("container")))
		require.NoError(t, c.Create(coordtest.Limited(t), w.Path("container/child"), nil))
		refused("container", "has children (1)")
		require.NoError(t, c.Delete(coordtest.Limited(t), w.Path("container/child"), -1))
		refused("container", "had children")
		require.NoError(t, coordtest.Err(c.Txn(coordtest.Limited(t), coord.EphemeralOp(w.Path("ephemeral"), nil))))
		refused("ephemeral", "session")
		require.NoError(t, c.Delete(coordtest.Limited(t), w.Path("ephemeral"), -1))
		require.NoError(t, c.Create(coordtest.Limited(t), w.Path("by-hand"), nil))
		require.NoError(t, at(t, c, w.Path("by-hand")).Set(coordtest.Limited(t)), "a node that was made by hand is one")
	})
}

func TestWhatABarrierCosts(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		gate := at(b, c, "/barrier")
		spent := func(f func()) zkembed.Counts {
			time.Sleep(time.Second) // nothing is under way from before
			return coordtest.Spent(b.Server, c, func() {
				f()
				synctest.Wait()
			})
		}
		require.NoError(b, gate.Set(b.Context()))
		require.NoError(b, gate.Open(b.Context()))
		set := spent(func() { require.NoError(b, gate.Set(b.Context())) })
		require.Equal(b, 1, set.Total(), "%v", set)
		again := spent(func() { require.NoError(b, gate.Set(b.Context())) })
		require.Equal(b, 2, again.Total(), "%v", again)
		var all []<-chan error
		wait := func() { all = append(all, coordtest.Go(func() error { return gate.Wait(b.Context()) })) }
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: 1, zkembed.OpGetData: 1}, spent(wait))
		const more = 10
		waits := spent(func() {
			for range more {
				wait()
			}
		})
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: more}, waits, "all that wait in one process share one watch")
		opened := spent(func() {
			require.NoError(b, gate.Open(b.Context()))
			passes(b.T, all...)
		})
		require.Equal(b, 1, opened[zkembed.OpNotify])
		require.Equal(b, 1, opened.Total(), "%v", opened)
	})
}
