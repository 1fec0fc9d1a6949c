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
		shared, _, err := c.Stand(b.Context(), coord.Spec{Line: line, Kind: "read"})
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
