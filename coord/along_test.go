package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestWhatGoesAlongWithAReleaseIsDoneByThatAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(b bubble, h *coord.Hold)
		want bool
	}{
		"released":  {func(b bubble, h *coord.Hold) { require.NoError(b, h.Release(b.Context())) }, true},
		"abandoned": {func(_ bubble, h *coord.Hold) { h.Abandon() }, true},
		"released, and the reply is lost": {func(b bubble, h *coord.Hold) {
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.LoseReply())
			require.NoError(b, h.Release(b.Context()))
			require.Equal(b, 1, lost.Fired())
		}, true},
		"released with a part": {func(b bubble, h *coord.Hold) {
			require.NoError(b, recipe.Attach(b.Context(), h, "/part", nil))
			require.NoError(b, h.Release(b.Context()))
		}, true},
		"forfeited": {func(_ bubble, h *coord.Hold) { recipe.Invalidate(h, nil) }, false},
		"forfeited for the end of another": {func(b bubble, h *coord.Hold) {
			recipe.Invalidate(h, coord.ErrWindowOver)
			require.ErrorIs(b, h.Err(), coord.ErrLost)
		}, false},
		"broken": {func(b bubble, h *coord.Hold) {
			require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
			<-h.Done()
			require.NoError(b, h.Release(b.Context()))
		}, false},
		"over with its session": {func(b bubble, h *coord.Hold) {
			require.NoError(b, b.Server.ExpireSession(h.Session()))
			<-h.Done()
			require.NoError(b, h.Release(b.Context()))
		}, false},
		"called off": {func(b bubble, h *coord.Hold) {
			require.NoError(b, recipe.OnRelease(h))
			require.NoError(b, h.Release(b.Context()))
		}, false},
	} {
		runInBubble(t, name, func(b bubble) {
			m, err := lock.New(b.Open(), "/lock")
			require.NoError(b, err)
			h := coordtest.Acquire(b, m)
			require.NoError(b, recipe.OnRelease(h, coord.CreateOp("/done", nil)))
			tt.end(b, h)
			time.Sleep(time.Second)
			require.False(b, b.exists(h.Node()))
			require.Equal(b, tt.want, b.exists("/done"))
			require.Error(b, recipe.OnRelease(h, coord.CreateOp("/late", nil)))
		})
	}
}

func TestWhatCannotGoAlongKeepsNoNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		m, err := lock.New(b.Open(), "/lock", lock.Reentrant())
		require.NoError(b, err)
		h := coordtest.Acquire(b, m)
		require.ErrorIs(b, recipe.OnRelease(h, coord.CreateOp("no path", nil)), coord.ErrInvalid)
		nested := b.Hold(recipe.Dup(h, func() {}))
		require.ErrorIs(b, recipe.OnRelease(nested, coord.CreateOp("/done", nil)), coord.ErrInvalid)
		require.NoError(b, nested.Release(b.Context()))
		require.NoError(b, recipe.OnRelease(h, coord.DeleteOp("/nobody", -1)))
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
	})
}

func TestAForfeitedHoldIsLostInAllItsHandles(t *testing.T) {
	inBubble(t, func(b bubble) {
		m, err := lock.New(b.Open(), "/lock", lock.Reentrant())
		require.NoError(b, err)
		h := coordtest.Acquire(b, m)
		held := h.Context(b.Context())
		inner := b.Hold(m.Acquire(held))
		enough := errors.New("enough")
		recipe.Invalidate(inner, enough)
		for _, h := range []*coord.Hold{h, inner} {
			require.ErrorIs(b, h.Err(), coord.ErrLost)
			require.ErrorIs(b, h.Err(), enough)
			recipe.Invalidate(h, errors.New("again"))
			require.ErrorIs(b, h.Err(), enough)
			require.NoError(b, h.Release(b.Context()))
		}
		require.ErrorIs(b, context.Cause(held), enough)
		h = coordtest.Acquire(b, m)
		require.NoError(b, h.Release(b.Context()))
		recipe.Invalidate(h, enough)
		require.ErrorIs(b, h.Err(), coord.ErrReleased)
	})
}

// It ends with a node in its place, or, where that cannot be made, as it does
// when the caller gives up.
func TestADowngradeDoesNotWhatGoesAlongWithARelease(t *testing.T) {
	for name, within := range map[string]time.Duration{"downgraded": time.Minute, "given up": 0} {
		runInBubble(t, name, func(b bubble) {
			c := b.Open()
			h := b.acquire(c,
				coord.Spec{Line: coord.Line{Dir: "/lock", Kinds: []string{"read", "write"}}, Kind: "write", Exclusive: true})
			require.NoError(b, recipe.OnRelease(h, coord.CreateOp("/done", nil)))
			shared, err := rwlock.Downgrade(b.Within(within), h)
			if within > 0 {
				require.NoError(b, shared.Release(b.Context()))
			} else {
				require.Error(b, err)
				require.NoError(b, h.Release(b.Context())) // once the node is deleted
			}
			require.Zero(b, b.owned(h.Session()))
			require.False(b, b.exists("/done"))
		})
	}
}

func TestWhatIsTooLargeToGoAlongDoesNotKeepTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		require.NoError(b, recipe.OnRelease(h, coord.CreateOp("/large", make([]byte, 2<<20))))
		require.NoError(b, h.Release(b.Context()))
		require.False(b, b.exists(h.Node()))
	})
}
