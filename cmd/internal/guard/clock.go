package guard

import "time"

// Instant is a point in time, in nanoseconds, on a clock that all processes of
// the machine share and that is never set. On Linux it goes on while the system
// is suspended.
type Instant int64

// Sub is the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Add is the instant d after t.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }
