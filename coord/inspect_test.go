package coord_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestInspectListsEveryKindUnlessSomeAreNamed(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			c := b.Open(coord.WithDialect(dialect))
			h, err := c.Acquire(b.Context(), coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"}, nil)
			require.NoError(t, err)
			require.NoError(t, c.Create(b.Context(), "/group/member-0000000001", nil))
			all, err := c.Inspect(b.Context(), "/group", "lock")
			require.NoError(t, err)
			require.Empty(t, all)
			named, err := c.Inspect(b.Context(), "/group", "lock", "member")
			require.NoError(t, err)
			all, err = c.Inspect(b.Context(), "/group")
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, all, named)
			require.Equal(t, "member", all[0].Kind)
			require.Equal(t, dialect, all[0].Dialect)
			require.Equal(t, h.Node(), all[0].Node)
			require.Equal(t, c.Identity(), all[0].Owner)
			require.NoError(t, h.Release(b.Context()))
		})
	}
}
