package session

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// woken is t as the clocks of a machine show it that was suspended for so long
// before: the wall clock has gone on, the monotonic clock has not. There is no
// other way to such a moment than into [time.Time], whose second word is the
// reading of the monotonic clock.
func woken(t time.Time, slept time.Duration) time.Time {
	t = t.Add(slept)
	(*(*[2]int64)(unsafe.Pointer(&t)))[1] -= int64(slept)
	return t
}

func TestTimeAsleepWhileARequestWasUnderWayCountsAsPassed(t *testing.T) {
	tr, c := begun(time.Second)
	slept := 3 * time.Second
	answered := woken(c.at(4500), slept)
	require.Equal(t, slept, asleep(c.at(4000), c.at(4000).Round(0), answered, answered.Round(0)))
	tr.ack(c.at(4000), answered, false)
	now := woken(c.at(7000), slept)
	tr.ack(now, now, true)
	// By the monotonic clock, the server heard of the session at 4 s at the
	// latest if it was at once, and at 4 s before the end of the sleep.
	require.Equal(t, 11_000, c.end(tr))
}
