package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

var retained = coord.NameSpec{Path: "/names/one", Exclusive: true, Retain: true}

// losing has a hold of a retained name, which is lost while its session lives.
// The servers are away until they are resumed.
func (b bubble) losing() (*coord.Client, *coord.Hold) {
	c := b.Open()
	h := b.Hold(recipe.AcquireName(b.Context(), c, retained))
	time.Sleep(T)
	b.Server.Stop()
	<-h.Done()
	require.ErrorIs(b, h.Err(), coord.ErrWindowOver)
	return c, h
}

func TestF92ANameThatIsRetainedIsTakenBackByTheSessionThatHasIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.losing()
		b.Server.Resume()
		zxid := b.Server.Zxid()
		again := b.Hold(recipe.AcquireName(b.Context(), c, retained))
		require.Equal(b, h.Token(), again.Token(), "nobody has seen it free")
		require.ErrorIs(b, h.Err(), coord.ErrLost, "for good")
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, again.Err(), "which is not the lost one's to release")
		require.ErrorIs(b, coordtest.Err(recipe.AcquireName(b.Context(), c, retained)), coord.ErrNodeExists,
			"it is taken back once")
		for _, node := range b.Server.Nodes() {
			require.False(b, node.Path == retained.Path && node.Stat.Czxid > zxid, "it was made anew")
		}
		require.NoError(b, again.Release(b.Context()))
		require.False(b, b.exists(retained.Path))
	})
}

func TestF92ANameThatIsRetainedIsLeftByWhoDoesNotWantItAnyMore(t *testing.T) {
	for name, leave := range map[string]func(b bubble, c *coord.Client, h *coord.Hold){
		"the lost hold is released": func(b bubble, _ *coord.Client, h *coord.Hold) {
			h.Abandon()
		},
		"the call that takes it back ends": func(b bubble, c *coord.Client, _ *coord.Hold) {
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			require.ErrorIs(b, coordtest.Err(recipe.AcquireName(ctx, c, retained)), context.Canceled)
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c, h := b.losing()
			leave(b, c, h)
			b.Server.Resume()
			time.Sleep(T / 2)
			require.False(b, b.exists(retained.Path))
		})
	}
}

func TestF92ANameThatIsRetainedIsMadeAnewWhereItIsNotThere(t *testing.T) {
	for name, remove := range map[string]func(b bubble, c *coord.Client, h *coord.Hold){
		"it was deleted by hand": func(b bubble, _ *coord.Client, h *coord.Hold) {
			require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
		},
		"its session is over": func(b bubble, c *coord.Client, _ *coord.Hold) {
			require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c, h := b.losing()
			b.Server.Resume()
			remove(b, c, h)
			again := b.Hold(recipe.AcquireName(b.Context(), c, retained))
			require.Greater(b, again.Token(), h.Token())
			require.NoError(b, again.Release(b.Context()))
			require.False(b, b.exists(retained.Path))
		})
	}
}

// Who ends a hold for others means it.
func TestF92ANameThatIsForfeitedIsNotRetained(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.Hold(recipe.AcquireName(b.Context(), c, retained))
		recipe.Invalidate(h, context.DeadlineExceeded)
		time.Sleep(T / 10)
		require.False(b, b.exists(retained.Path))
	})
}
