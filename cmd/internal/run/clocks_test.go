//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The servers' clock is two hours behind this machine's.
func TestF66CommandsRunAJobOnceAndASchedulesSlotsWhateverTheServersClockSays(t *testing.T) {
	w := zktest.NewPrivate(t, zktest.Real, zktest.WithClock(-2*time.Hour))
	once := func(key string) []string { return jobs(w, key, "echo runs", "--at-most-once", "--keep", "1h") }
	require.Equal(t, "runs", cmdtest.On(t, w, once("report")...).Gives(0))
	require.Equal(t, "runs", cmdtest.On(t, w, once("another")...).Gives(0), "it deletes what is too old")
	cmdtest.On(t, w, once("report")...).Ends(0, `"report" was done`)

	schedule := cmdtest.On(t, w, "cron", "--missed", "all", w.Path("cron"), "@every 1s", "--", "sh", "-c",
		"echo $COORD_INSTANT")
	var before time.Time
	for range 3 {
		slot, err := time.Parse(time.RFC3339, schedule.Line())
		require.NoError(t, err)
		require.InDelta(t, -2*time.Hour, time.Until(slot), float64(10*time.Minute))
		if !before.IsZero() {
			require.Equal(t, time.Second, slot.Sub(before))
		}
		before = slot
	}
}
