package coord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// A follower tells its leader every half tick whom it has heard, and nothing of
// the last of them if it is cut off just before. What it acknowledged meanwhile,
// writes included, has not prolonged the session.
func TestAHoldBehindAFollowerIsolatedBeforeItsReportEndsBeforeTheNextIsGranted(t *testing.T) {
	const report = tick / 2
	for phase := time.Duration(0); phase < tick; phase += 80 * time.Millisecond { // of the reports against the leader's ticks
		t.Run(fmt.Sprint("phase ", phase), func(t *testing.T) {
			inBubble(t, func(b bubble) {
				holder, other := b.Open(coord.WithTick(tick)), b.Open(coord.WithTick(tick))
				h := b.acquire(holder)
				time.Sleep(phase)
				follower := b.Server.AddFollower(time.Millisecond, h.Session())
				time.Sleep(T)
				for isolated := time.Now().Add(report * 99 / 100); time.Now().Before(isolated); {
					require.NoError(t, holder.Flush(b.Context()))
					time.Sleep(report / 200)
				}
				follower.Isolate()
				next, err := other.Acquire(b.Context(), mutex, first)
				require.NoError(t, err)
				require.True(t, ended(h), "two holders")
				follower.Rejoin()
				require.NoError(t, next.Release(b.Context()))
			})
		})
	}
}
