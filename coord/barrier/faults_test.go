package barrier_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAWaiterThatWasCutOffSeesTheRemoval(t *testing.T) {
	cutOff(t, func(t *testing.T, b func() error, _ func() error) { require.NoError(t, b()) })
}

func TestAWaiterThatWasCutOffSeesTheRemovalThoughTheBarrierIsClosedAgain(t *testing.T) {
	cutOff(t, func(t *testing.T, remove, set func() error) {
		require.NoError(t, remove())
		require.NoError(t, set())
	})
}

// cutOff does something to the barrier while the waiter has no connection.
func cutOff(t *testing.T, do func(t *testing.T, remove, set func() error)) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		other := at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, other.Set(coordtest.Limited(t)))
		p := w.Proxy()
		c := coordtest.Open(t, p.Addr())
		passed := waiting(t, w, t.Context(), at(t, c, path), path)
		_, _, err := c.Exists(coordtest.Limited(t), path) // answered after what the waiter had asked
		require.NoError(t, err)
		p.Refuse()
		require.Positive(t, p.CutAll())
		do(t, func() error { return other.Remove(coordtest.Limited(t)) }, func() error { return other.Set(coordtest.Limited(t)) })
		require.Empty(t, passed)
		p.Heal()
		passes(t, passed)
		require.NoError(t, other.Remove(coordtest.Limited(t)))
	})
}

func TestAWaiterWaitsOnInANewSession(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		over := make(chan struct{}, 10)
		c := coordtest.Open(t, w.ConnectString(), coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.SessionOver {
				over <- struct{}{}
			}
		}))
		b, other := at(t, c, path), at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, other.Set(coordtest.Limited(t)))
		passed := waiting(t, w, t.Context(), b, path)
		w.ExpireSession(c.SessionID())
		zktest.Receive(t, coordtest.Soon, over, "the end of the session")
		zktest.Eventually(t, coordtest.Soon, func() bool { return watchers(w, path) == 1 }, "a watch in the new session")
		require.Empty(t, passed, "passed a closed barrier")
		require.NoError(t, other.Remove(coordtest.Limited(t)))
		passes(t, passed)
	})
}

func TestAWaiterSeesARemovalBetweenItsSessions(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("barrier")
		p := w.Proxy()
		c := coordtest.Open(t, p.Addr())
		b, other := at(t, c, path), at(t, coordtest.Open(t, w.ConnectString()), path)
		require.NoError(t, other.Set(coordtest.Limited(t)))
		passed := waiting(t, w, t.Context(), b, path)
		p.Refuse()
		w.ExpireSession(c.SessionID())
		require.NoError(t, other.Remove(coordtest.Limited(t)))
		require.NoError(t, other.Set(coordtest.Limited(t)))
		p.Heal()
		passes(t, passed)
		require.NoError(t, other.Remove(coordtest.Limited(t)))
	})
}

func TestALostRequestOrReplyIsMadeGood(t *testing.T) {
	for name, action := range map[string]proxy.Action{"reply": proxy.CutOnReply, "request": proxy.DropAndCut} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path, p := w.Path("barrier"), w.Proxy()
				b := at(t, coordtest.Open(t, p.Addr()), path)
				require.NoError(t, b.Set(coordtest.Limited(t))) // makes the parent
				require.NoError(t, b.Remove(coordtest.Limited(t)))
				lost := p.Inject(proxy.Fault{Path: path, Do: action})
				require.NoError(t, b.Set(coordtest.Limited(t)))
				require.Equal(t, 1, lost.Fired())
				exists, _, err := w.Admin().Exists(path)
				require.NoError(t, err)
				require.True(t, exists)
				lost = p.Inject(proxy.Fault{Path: path, Do: action})
				require.NoError(t, b.Remove(coordtest.Limited(t)))
				require.Equal(t, 1, lost.Fired())
				lost = p.Inject(proxy.Fault{Path: path, Do: action})
				require.NoError(t, b.Wait(coordtest.Limited(t)))
				require.Equal(t, 1, lost.Fired())
			})
		})
	}
}

func TestAThrottledRequestIsRepeated(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	path := w.Path("barrier")
	b := at(t, coordtest.Open(t, w.ConnectString()), path)
	throttle := w.Embedded().Inject(zkembed.Match{PathPrefix: path, Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp))
	require.NoError(t, b.Set(coordtest.Limited(t)))
	require.NoError(t, b.Remove(coordtest.Limited(t)))
	require.NoError(t, b.Wait(coordtest.Limited(t)))
	require.Equal(t, 3, throttle.Fired())
}

// The server may be behind; a wait that begins after Set has returned must wait
// all the same, and must not take an opening that was over before for a new
// one.
func TestAWaiterAtAServerThatLagsDoesNotPass(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := zktest.NewEmbedded(t)
		path, srv := w.Path("barrier"), w.Embedded()
		other, late := at(t, coordtest.Open(t, w.ConnectString()), path), coordtest.Open(t, w.ConnectString())
		if again {
			require.NoError(t, other.Set(coordtest.Limited(t)))
		}
		follower := srv.AddFollower(time.Minute, late.SessionID())
		if again {
			require.NoError(t, other.Remove(coordtest.Limited(t)))
		}
		require.NoError(t, other.Set(coordtest.Limited(t)))
		require.Less(t, follower.Zxid(), srv.Zxid(), "the follower does not lag")
		before := srv.SessionCounts(late.SessionID()).Total()
		b, ctx, passed := at(t, late, path), coordtest.Limited(t), make(chan error, 1)
		go func() { passed <- b.Wait(ctx) }()
		zktest.Eventually(t, coordtest.Soon, func() bool { return srv.SessionCounts(late.SessionID()).Total() > before }, "a request")
		follower.Stop() // it has caught up
		zktest.Eventually(t, coordtest.Soon, func() bool {
			require.Empty(t, passed, "passed a closed barrier")
			return watchers(w, path) == 1
		}, "a watch on the barrier")
		require.Empty(t, passed)
		require.NoError(t, other.Remove(coordtest.Limited(t)))
		passes(t, passed)
	}
}
