package window

import (
	"sync"
	"time"
)

// Clock is the clock of a session: it runs on while the machine is suspended,
// and cannot be set. Its moments compare with each other only; [Clock.Wall]
// makes them times that compare with time.Now.
//
// It misses a pause that no clock of the machine sees: a virtual machine that
// is restored from a snapshot, or migrated, may have stood still for a while.
type Clock struct {
	// Suspended returns how long the machine has been suspended so far; nil
	// means that of this machine.
	Suspended func() time.Duration
}

// Now returns the current moment.
func (c Clock) Now() time.Time { return c.moment(time.Now()) }

func (c Clock) moment(now time.Time) time.Time { return now.Add(c.suspended()) }

// Wall returns the time at which the clock shows moment, as far as is known
// now: a later suspend makes it come earlier.
func (c Clock) Wall(moment time.Time) time.Time { return moment.Add(-c.suspended()) }

func (c Clock) suspended() time.Duration {
	if c.Suspended != nil {
		return c.Suspended()
	}
	return machine.suspended()
}

var machine meter

// meter measures how long a machine has been suspended.
type meter struct {
	mu    sync.Mutex
	slept time.Duration
	mono  time.Time // the last readings, where the wall clock is what there is
	wall  time.Time
}

func (m *meter) suspended() time.Duration {
	if slept, ok := kernelSuspended(); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.slept = max(m.slept, slept)
		return m.slept
	}
	now := time.Now()
	return m.compare(now, now.Round(0)) // Round strips the monotonic reading
}

// jitter is how far apart the two clocks may be read; a wall clock that was set
// back by more was set back.
const jitter = 10 * time.Millisecond

// compare counts time that the wall clock saw, and the monotonic clock did not,
// as a suspend. A step forward of the wall clock looks the same. Short suspends
// add up.
func (m *meter) compare(mono, wall time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mono.IsZero() {
		if gap := wall.Sub(m.wall) - mono.Sub(m.mono); gap > -jitter {
			m.slept = max(m.slept+gap, 0)
		}
	}
	m.mono, m.wall = mono, wall
	return m.slept
}
