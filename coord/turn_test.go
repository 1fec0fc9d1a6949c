package coord_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// Whoever wants a wait to end may leave the claim from elsewhere.
func TestAWaitForTheTurnOfAClaimThatIsLeftEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		claim, err := c.Join(b.Context(), mutex)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := claim.Turn(b.Context(), first)
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, claim.Leave(b.Context()))
		require.ErrorIs(t, <-ended, coord.ErrReleased)
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestAClaimThatWasLeftHasNoTurnAndNoPlace(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for _, spec := range []coord.Spec{
			mutex,
			{Line: coord.Line{Dir: "/group"}, Kind: "member", Unlisted: true},
			{Line: coord.Line{Dir: "/names"}, Name: "one"},
		} {
			claim, err := c.Join(b.Context(), spec)
			require.NoError(t, err)
			if spec.Kind == coord.Lock {
				_, err = claim.Turn(b.Context(), first) // uses the listing of the join up
				require.NoError(t, err)
			}
			require.NoError(t, claim.Leave(b.Context()))
			_, err = claim.Turn(b.Context(), first)
			require.ErrorIs(t, err, coord.ErrReleased)
			if spec.Kind == coord.Lock {
				_, err = claim.Listed(b.Context())
				require.ErrorIs(t, err, coord.ErrReleased)
			}
		}
	})
}

func TestAnObserverHearsOfTheReleaseOfAHoldWhoseClaimIsLeft(t *testing.T) {
	inBubble(t, func(b bubble) {
		var granted, released atomic.Int32
		c := b.Open(coord.WithObserver(func(e coord.Event) {
			switch e.Kind {
			case coord.ClaimGranted:
				granted.Add(1)
			case coord.ClaimReleased:
				released.Add(1)
			}
		}))
		claim, err := c.Join(b.Context(), mutex)
		require.NoError(t, err)
		_, err = claim.Turn(b.Context(), first)
		require.NoError(t, err)
		require.NoError(t, claim.Leave(b.Context()))
		require.EqualValues(t, 1, granted.Load())
		require.EqualValues(t, 1, released.Load())
	})
}
