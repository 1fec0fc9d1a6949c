package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// The recipes that docs/authoring.md shows.

// startAcquire begins an acquire, and returns when it waits, or is over.
func (b bubble) startAcquire(acquire func(context.Context) (*coord.Hold, error)) <-chan outcome {
	over := b.later(acquire)
	time.Sleep(time.Second)
	return over
}

func TestAPairLetsTwoHoldAndEitherMakesRoomForTheThird(t *testing.T) {
	for first := range 2 {
		inBubble(t, func(b bubble) {
			pair, err := NewPair(b.Open(), "/pair")
			require.NoError(b, err)
			var waits []<-chan outcome
			var holds []*coord.Hold
			for range 3 {
				waits = append(waits, b.startAcquire(pair.Acquire))
			}
			for _, over := range waits[:2] {
				holds = append(holds, b.granted(over))
			}
			require.Empty(b, waits[2], "three hold")
			require.NoError(b, holds[first].Release(b.Context()))
			b.granted(waits[2])
			require.NoError(b, holds[1-first].Release(b.Context()))
		})
	}
}

func TestALatchOpensForAllWhenTheLastHasCountedDownAndStaysOpen(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 3
		other, err := NewLatch(b.Open(), "/a/latch", n)
		require.NoError(b, err)
		var waits []<-chan outcome
		for range 3 {
			latch, err := NewLatch(b.Open(), "/a/latch", n)
			require.NoError(b, err)
			waits = append(waits, b.startAcquire(func(ctx context.Context) (*coord.Hold, error) { return nil, latch.Wait(ctx) }))
		}
		for _, party := range []string{"x", "y", "y", "x", "z"} {
			for _, over := range waits {
				require.Empty(b, over, "open before %s", party)
			}
			require.NoError(b, other.CountDown(b.Context(), party))
			time.Sleep(time.Second)
		}
		for _, over := range waits {
			require.NoError(b, (<-over).Err)
		}
		require.NoError(b, other.Wait(b.Context()))
	})
}

// paused returns a mutex that is paused, and another client.
func (b bubble) paused() (*Pausable, *coord.Client) {
	b.Helper()
	other := b.Open()
	mutex, err := NewPausable(b.Open(), "/m", "/pause")
	require.NoError(b, err)
	require.NoError(b, other.Create(b.Context(), "/pause", nil))
	return mutex, other
}

func TestAPausableIsGrantedAfterThePauseAndToOneAtATime(t *testing.T) {
	inBubble(t, func(b bubble) {
		mutex, other := b.paused()
		first, second := b.startAcquire(mutex.Acquire), b.startAcquire(mutex.Acquire)
		require.Empty(b, first, "granted in the pause")
		require.NoError(b, other.Delete(b.Context(), "/pause", -1))
		g := b.granted(first)
		time.Sleep(time.Second)
		require.Empty(b, second, "two hold")
		require.NoError(b, g.Release(b.Context()))
		b.granted(second)
	})
}

func TestAPausableThatIsLostInThePauseSaysSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		mutex, other := b.paused()
		first := b.startAcquire(mutex.Acquire)
		line := b.nodesOf(mutex.client.Info().SessionID)
		require.Len(b, line, 1)
		require.NoError(b, other.Delete(b.Context(), line[0], -1))
		require.ErrorIs(b, (<-first).Err, coord.ErrLost)
	})
}
