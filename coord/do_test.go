package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

func acquiring(c *coord.Client) func(context.Context) (*coord.Hold, error) {
	return func(ctx context.Context) (*coord.Hold, error) { return c.Acquire(ctx, mutex, coord.First) }
}

func TestDoReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, boom := b.Open(), errors.New("boom")
		err := coord.Do(b.Context(), acquiring(c), func(context.Context, *coord.Hold) error { return boom })
		require.Equal(b, boom, err)
		require.NoError(b, coord.Do(b.Context(), acquiring(c), func(_ context.Context, h *coord.Hold) error {
			return h.Release(b.Context())
		}), "what f itself released was not lost")
	})
}

func TestDoReportsALossBesideTheErrorOfItsFunction(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, boom := b.Open(), errors.New("boom")
		err := coord.Do(b.Context(), acquiring(c), func(ctx context.Context, h *coord.Hold) error {
			require.NoError(b, b.Server.ExpireSession(h.Session()))
			<-ctx.Done()
			return boom
		})
		var both *multierror.Error
		require.ErrorAs(b, err, &both)
		require.Len(b, both.Errors, 2)
		require.ErrorIs(b, err, boom)
		require.ErrorIs(b, err, coord.ErrLost)
		require.EqualError(b, err, "boom; "+both.Errors[1].Error(), "one line")
	})
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.PanicsWithValue(b, "boom", func() {
			_ = coord.Do(b.Context(), acquiring(c), func(context.Context, *coord.Hold) error { panic("boom") })
		})
		require.Zero(b, b.owned(c.SessionID()))
	})
}

// A server that does not answer any more takes until the session time-out to
// answer for.
func TestDoEndsWithItsContextAlsoWhenTheServerHangs(t *testing.T) {
	for name, left := range map[string]time.Duration{"ended before f returns": 0, "ends during the release": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c := b.Open()
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				var begun time.Time
				err := coord.Do(ctx, acquiring(c), func(_ context.Context, h *coord.Hold) error {
					cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{h.Session()}, NewConns: zkembed.HangDial})
					b.Cleanup(cut.Heal)
					begun = time.Now()
					if left == 0 {
						cancel()
					} else {
						time.AfterFunc(left, cancel)
					}
					return nil
				})
				require.ErrorIs(b, err, coord.ErrUnconfirmed)
				require.ErrorIs(b, err, context.Canceled)
				require.NotErrorIs(b, err, context.DeadlineExceeded)
				require.LessOrEqual(b, time.Since(begun), max(left, 50*time.Millisecond))
			})
		})
	}
}
