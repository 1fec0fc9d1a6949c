//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a point in time, in nanoseconds, on a clock that all processes of
// the machine share and that is never set. On Linux it goes on while the system
// is suspended.
type Instant int64

// Sub is the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Add is the instant d after t.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Now is the present instant.
func Now() Instant {
	var ts unix.Timespec
	// It fails for a bad clock or address only, and neither is the case.
	_ = unix.ClockGettime(clock, &ts)
	return Instant(ts.Nano())
}

// InstantOf converts a time that carries a monotonic reading. The clock is read
// before the monotonic one: if the system is suspended between the two
// readings, the result is early, never late.
func InstantOf(t time.Time) Instant {
	now := Now()
	return now.Add(time.Until(t))
}
