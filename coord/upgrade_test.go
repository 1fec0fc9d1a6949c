package coord_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestAnExclusiveClaimInsideOfASharedHoldOfTheSameLineIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		line := coord.Line{Dir: "/lock", Kinds: []string{"read", "write"}}
		shared, err := c.Acquire(b.Context(), coord.Spec{Line: line, Kind: "read"}, nil)
		require.NoError(t, err)
		for _, reentrant := range []bool{false, true} {
			write := coord.Spec{Line: line, Kind: "write", Exclusive: true, Reentrant: reentrant}
			_, err := c.Acquire(shared.Context(b.Context()), write, coord.First)
			require.ErrorIs(t, err, coord.ErrUpgrade)
			_, err = c.TryAcquire(shared.Context(b.Context()), write, coord.First)
			require.ErrorIs(t, err, coord.ErrUpgrade)
		}
		require.NoError(t, shared.Release(b.Context()))
	})
}
