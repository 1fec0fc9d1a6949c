package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeForWhichTheMachineWasSuspendedPasses(t *testing.T) {
	var slept time.Duration
	c := Clock{Suspended: func() time.Duration { return slept }}
	begun, wall := c.Now(), time.Now()
	slept = time.Hour
	require.GreaterOrEqual(t, c.Now().Sub(begun), time.Hour)
	require.LessOrEqual(t, c.Wall(begun).Sub(wall), -time.Hour+time.Minute)
}

func TestTheClockOfThisMachineDoesNotGoBack(t *testing.T) {
	var c Clock
	last := c.Now()
	for range 10_000 {
		now := c.Now()
		require.False(t, now.Before(last))
		last = now
	}
}

// reading is what time.Now returns when the monotonic clock shows one thing and
// the wall clock has been moved against it.
func reading(start time.Time, passed, moved time.Duration) (mono, wall time.Time) {
	return start.Add(passed), start.Add(passed + moved).Round(0)
}

func TestSuspendsThatOnlyTheWallClockSawAddUp(t *testing.T) {
	var m meter
	start, moved, passed := time.Now(), time.Duration(0), time.Duration(0)
	m.compare(reading(start, 0, 0))
	var slept time.Duration
	for range 100 {
		passed, moved = passed+40*time.Millisecond, moved+190*time.Millisecond
		slept = m.compare(reading(start, passed, moved))
	}
	require.Equal(t, 19*time.Second, slept)
}

func TestAWallClockThatIsSetBackHidesNoSuspend(t *testing.T) {
	var m meter
	start := time.Now()
	m.compare(reading(start, 0, 0))
	m.compare(reading(start, time.Second, time.Minute))
	require.Equal(t, time.Minute, m.compare(reading(start, 2*time.Second, -time.Hour)))
	require.Equal(t, 2*time.Minute, m.compare(reading(start, 3*time.Second, time.Minute-time.Hour)))
}

func TestClocksReadApartAreNoSuspend(t *testing.T) {
	var m meter
	start := time.Now()
	m.compare(reading(start, 0, 0))
	for i := range 1000 {
		apart := time.Duration(i%2) * -jitter / 2
		require.LessOrEqual(t, m.compare(reading(start, time.Duration(i)*time.Second, apart)), jitter)
	}
}
