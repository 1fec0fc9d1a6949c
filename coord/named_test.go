package coord_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// named is a claim of a name that others want, too, and what proves it.
func (b bubble) named(c *coord.Client) *coord.Hold {
	b.Helper()
	require.NoError(b, c.EnsureDir(b.Context(), "/names"))
	require.NoError(b, c.Create(b.Context(), "/proof", nil))
	h, err := c.AcquireName(b.Context(), coord.NameSpec{
		Path: "/names/one", Data: []byte("mine"),
		With:  []coord.Op{coord.SetOp("/proof", nil, 0)},
		Proof: []coord.Op{coord.CheckOp("/proof", 1)},
	})
	require.NoError(b, err)
	return h
}

// The data are the same, so that only the version tells the two nodes from each
// other.
func TestAReleaseLeavesTheNodeAloneThatIsAnothersByNow(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
		require.NoError(t, inspect.Break(b.Context(), admin, "/names/one"))
		require.NoError(t, coordtest.Err(admin.Txn(b.Context(), coord.CreateOp("/names/one", []byte("another's"), coord.Ephemeral))))
		require.NoError(t, h.Err(), "it does not know")
		require.NoError(t, h.Release(b.Context()))
		data, _, err := admin.Get(b.Context(), "/names/one")
		require.NoError(t, err)
		require.Equal(t, "another's", string(data))
	})
}

func TestAReleaseDeletesTheNodeAlsoWhenWhatProvedItIsGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.named(c)
		require.NoError(t, c.Delete(b.Context(), "/proof", -1))
		require.NoError(t, h.Release(b.Context()))
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestAReleaseDeletesNothingWhenItsProofHasChanged(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
		require.NoError(t, inspect.Break(b.Context(), admin, "/names/one"))
		// Another's claim of the same name, made in the same way.
		_, err := admin.Txn(b.Context(),
			coord.CreateOp("/names/one", nil, coord.Ephemeral), coord.SetOp("/names/one", nil, 0), coord.SetOp("/proof", nil, 1))
		require.NoError(t, err)
		require.NoError(t, h.Release(b.Context()))
		_, there, err := admin.Exists(b.Context(), "/names/one")
		require.NoError(t, err)
		require.True(t, there)
	})
}

func TestAHoldWhoseNameIsAnothersWhenItsClientIsBackIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		c, admin := b.Open(b.leaving(&away)), b.Open()
		h := b.named(c)
		time.Sleep(time.Second) // until the own watch is set
		away.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		require.NoError(t, inspect.Break(b.Context(), admin, "/names/one"))
		require.NoError(t, coordtest.Err(admin.Txn(b.Context(), coord.CreateOp("/names/one", []byte("another's"), coord.Ephemeral))))
		time.Sleep(time.Second)
		require.NoError(t, h.Err(), "it does not know")
		away.Store(false)
		require.NoError(t, coordtest.Write(b.Context(), c))
		synctest.Wait()
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

func TestOfTwoClaimsOfOneNameAtTheSameTimeTheOneThatHoldsHasItsToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/names"))
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.DelayReply(time.Second))
		holds := make(chan *coord.Hold, 2)
		for _, data := range []string{"one", "other"} {
			go func() {
				h, err := c.AcquireName(b.Context(), coord.NameSpec{Path: "/names/name", Data: []byte(data), Exclusive: true})
				if err != nil {
					require.ErrorIs(t, err, coord.ErrNodeExists)
				}
				holds <- h
			}()
		}
		h := <-holds
		if other := <-holds; other != nil {
			require.Nil(t, h)
			h = other
		}
		stat, _, err := c.Exists(b.Context(), h.Node())
		require.NoError(t, err)
		require.Equal(t, stat.Czxid, h.Token())
		require.NoError(t, h.Release(b.Context()))
	})
}
