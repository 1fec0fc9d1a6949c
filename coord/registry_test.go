package coord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// The last claim takes the place of one that is removed.
func TestAClaimThatWasMovedInTheRegistryKeepsItsWindowOpen(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, holder := b.holder()
		c := b.Open()
		passing := b.acquire(c, coord.Spec{Line: coord.Line{Dir: "/other"}, Kind: "lock", Exclusive: true})
		waiting := b.acquireLater(c)
		require.NoError(t, passing.Release(b.Context()))
		require.NoError(t, holder.Release(b.Context()))
		h := b.granted(waiting)
		time.Sleep(time.Hour)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestAllHoldsThatAreLeftAreToldOfTheirLoss(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 9
		c := b.Open()
		holds := make([]*coord.Hold, n)
		for i := range holds {
			holds[i] = b.acquire(c, coord.Spec{Line: coord.Line{Dir: fmt.Sprintf("/lock%d", i)}, Kind: "lock", Exclusive: true})
		}
		for _, i := range []int{0, 8, 3, 7} { // the first, the last, one between them, and the one that took its place
			require.NoError(t, holds[i].Release(b.Context()))
			holds[i] = nil
		}
		require.NoError(t, b.Server.ExpireSession(c.Info().SessionID))
		for _, h := range holds {
			if h != nil {
				<-h.Done()
				require.ErrorIs(t, h.Err(), coord.ErrLost)
			}
		}
	})
}
