package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// skewed runs f with servers whose clock is hours from the client's.
func skewed(t *testing.T, f func(b coordtest.Bubble)) {
	coordtest.InBubbles(t, map[string]time.Duration{"servers behind": -2 * time.Hour, "servers ahead": 2 * time.Hour},
		func(b coordtest.Bubble, ahead time.Duration) {
			b.Server.ShiftClock(ahead)
			f(b)
		})
}

func TestF66ARecordIsKeptForItsTimeHoweverTheClocksDiffer(t *testing.T) {
	skewed(t, func(b coordtest.Bubble) {
		c := b.Open()
		o := ledger(b, c, "/jobs", once.Attempts(1, 0), once.Keep(time.Hour))
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "report", says("once"))))
		time.Sleep(time.Hour - time.Minute)
		fresh := ledger(b, b.Open(), "/jobs", once.Attempts(1, 0), once.Keep(time.Hour))
		for _, o := range []*once.Once{o, fresh} {
			require.NoError(b, coordtest.Err(o.Do(b.Context(), "another", says(""))), "its run prunes")
			pruned, err := o.Prune(b.Context())
			require.NoError(b, err)
			require.Zero(b, pruned)
			require.NoError(b, coordtest.Err(o.Do(b.Context(), "report", never(b))))
		}
		time.Sleep(2 * time.Minute)
		pruned, err := fresh.Prune(b.Context())
		require.NoError(b, err)
		require.Equal(b, 1, pruned)
	})
}

func TestAttemptsAreTheirTimeApartHoweverTheClocksDiffer(t *testing.T) {
	skewed(t, func(b coordtest.Bubble) {
		opt := once.Attempts(2, 10*time.Minute)
		require.ErrorIs(b, coordtest.Err(ledger(b, b.Open(), "/jobs", opt).TryDo(b.Context(), "report", fails)), errNoLuck)
		failed := time.Now()
		time.Sleep(time.Minute)
		_, err := ledger(b, b.Open(), "/jobs", opt).
			Do(b.Context(), "report", func(context.Context, *once.Run) ([]byte, error) {
				require.InDelta(b, 10*time.Minute, time.Since(failed), float64(time.Second))
				return nil, nil
			})
		require.NoError(b, err)
	})
}
