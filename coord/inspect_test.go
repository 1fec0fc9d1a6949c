package coord_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

func TestInspectListsEveryKindUnlessSomeAreNamed(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			c := b.Open(coord.WithDialect(dialect))
			h, _, err := c.Stand(b.Context(), coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"})
			require.NoError(t, err)
			require.NoError(t, c.Create(b.Context(), "/group/member-0000000001", nil))
			all, err := inspect.Contenders(b.Context(), c, "/group", "lock")
			require.NoError(t, err)
			require.Empty(t, all)
			named, err := inspect.Contenders(b.Context(), c, "/group", "lock", "member")
			require.NoError(t, err)
			all, err = inspect.Contenders(b.Context(), c, "/group")
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

func TestTheFirstOfEachDialectHolds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/mixed"))
		guid := strings.Repeat("0123456789abcdef", 2)
		for _, name := range []string{
			"_c_" + guid + "-__READ__0000000001", guid + "__lock__0000000002",
			"_c_" + guid + "-__READ__0000000003", guid + "__lock__0000000004", "_c_" + guid + "-__WRIT__0000000005",
		} {
			require.NoError(t, c.Create(b.Context(), "/mixed/"+name, nil))
		}
		all, err := inspect.Contenders(b.Context(), c, "/mixed")
		require.NoError(t, err)
		var holds []bool
		for _, info := range all {
			holds = append(holds, info.Holds)
		}
		require.Equal(t, []bool{true, true, true, false, false}, holds)
	})
}
