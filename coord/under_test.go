package coord_test

import (
	"context"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

func TestAClaimTellsUnderWhichHoldsItIsMade(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			const around = "_c_0-lock-0000000007"
			c, other := b.Open(coord.WithDialect(dialect), coord.WithHeld(around)), b.Open(coord.WithDialect(dialect))
			at := func(c *coord.Client, ctx context.Context, dir string) *coord.Hold {
				h, err := c.Acquire(ctx, coord.Spec{Line: coord.LockLine(dir), Kind: "lock"}, coord.First)
				require.NoError(b, err)
				return h
			}
			under := func(dir string) []string {
				all, err := inspect.Contenders(b.Context(), other, dir)
				require.NoError(b, err)
				require.Len(b, all, 1)
				require.Contains(b, []string{c.Identity(), other.Identity()}, all[0].Owner)
				return all[0].Under
			}
			outer := at(other, b.Context(), "/outer")
			require.Empty(b, under("/outer"))
			ctx := outer.Context(outer.Context(b.Context()))
			middle := at(c, ctx, "/middle")
			require.Equal(b, []string{around, path.Base(outer.Node())}, under("/middle"), "also one of another client")
			inner := at(other, middle.Context(ctx), "/inner")
			want := []string{path.Base(outer.Node()), path.Base(middle.Node())}
			require.Equal(b, want, under("/inner"))
			require.NoError(b, inspect.Revoke(b.Context(), other, inner.Node()))
			require.Equal(b, want, under("/inner"), "a request leaves it to see")
			for _, h := range []*coord.Hold{inner, middle, outer} {
				require.NoError(b, h.Release(b.Context()))
			}
		})
	}
}

func TestDataOfOnesOwnAreNotAddedTo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithHeld("_c_0-lock-0000000007"))
		h, err := c.AcquireName(b.Context(), coord.NameSpec{Path: "/name", Data: []byte("mine")})
		require.NoError(b, err)
		data, _, err := c.Get(b.Context(), h.Node())
		require.NoError(b, err)
		require.Equal(b, "mine", string(data))
		require.NoError(b, h.Release(b.Context()))
		_, err = coord.Open(b.Context(), b.Server.ConnectString(), coord.WithHeld("a/b"))
		require.ErrorIs(b, err, coord.ErrInvalid)
	})
}
