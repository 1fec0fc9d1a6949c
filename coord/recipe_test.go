package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// The recipes of one's own that docs/recipes.md shows.

// acquired is what a call that may wait has returned.
type acquired struct {
	hold *coord.Hold
	err  error
}

// startAcquire begins an acquire, and returns when it waits, or is over.
func startAcquire(b coordtest.Bubble, acquire func(context.Context) (*coord.Hold, error)) <-chan acquired {
	over := coordtest.Go(func() acquired {
		h, err := acquire(b.Context())
		return acquired{h, err}
	})
	time.Sleep(time.Second)
	return over
}

func TestAPairLetsTwoHoldAndEitherMakesRoomForTheThird(t *testing.T) {
	for first := range 2 {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			pair, err := NewPair(b.Open(), "/pair")
			require.NoError(b, err)
			var waits []<-chan acquired
			var holds []*coord.Hold
			for range 3 {
				waits = append(waits, startAcquire(b, pair.Acquire))
			}
			for _, over := range waits[:2] {
				g := <-over
				require.NoError(b, g.err)
				holds = append(holds, g.hold)
			}
			require.Empty(b, waits[2], "three hold")
			require.NoError(b, holds[first].Release(b.Context()))
			third := <-waits[2]
			require.NoError(b, third.err)
			require.NoError(b, holds[1-first].Release(b.Context()))
			require.NoError(b, third.hold.Release(b.Context()))
		})
	}
}

func TestALatchOpensForAllWhenTheLastHasCountedDownAndStaysOpen(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const n = 3
		other, err := NewLatch(b.Open(), "/a/latch", n)
		require.NoError(b, err)
		var waits []<-chan acquired
		for range 3 {
			latch, err := NewLatch(b.Open(), "/a/latch", n)
			require.NoError(b, err)
			waits = append(waits, startAcquire(b, func(ctx context.Context) (*coord.Hold, error) { return nil, latch.Wait(ctx) }))
		}
		for _, party := range []string{"x", "y", "y", "x", "z"} {
			for _, over := range waits {
				require.Empty(b, over, "open before %s", party)
			}
			require.NoError(b, other.CountDown(b.Context(), party))
			time.Sleep(time.Second)
		}
		for _, over := range waits {
			require.NoError(b, (<-over).err)
		}
		require.NoError(b, other.Wait(b.Context()))
	})
}

func TestAPausableIsGrantedAfterThePauseAndToOneAtATime(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		mutex, err := NewPausable(c, "/m", "/pause")
		require.NoError(b, err)
		require.NoError(b, other.Create(b.Context(), "/pause", nil))
		first, second := startAcquire(b, mutex.Acquire), startAcquire(b, mutex.Acquire)
		require.Empty(b, first, "granted in the pause")
		require.NoError(b, other.Delete(b.Context(), "/pause", -1))
		g := <-first
		require.NoError(b, g.err)
		time.Sleep(time.Second)
		require.Empty(b, second, "two hold")
		require.NoError(b, g.hold.Release(b.Context()))
		g = <-second
		require.NoError(b, g.err)
		require.NoError(b, g.hold.Release(b.Context()))
	})
}

func TestAPausableThatIsLostInThePauseSaysSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		mutex, err := NewPausable(c, "/m", "/pause")
		require.NoError(b, err)
		require.NoError(b, other.Create(b.Context(), "/pause", nil))
		first := startAcquire(b, mutex.Acquire)
		line, err := other.Children(b.Context(), "/m")
		require.NoError(b, err)
		require.Len(b, line, 1)
		require.NoError(b, other.Delete(b.Context(), "/m/"+line[0], -1))
		require.ErrorIs(b, (<-first).err, coord.ErrLost)
	})
}
