package workload

import (
	"slices"
	"sync"
	"time"
)

// Clock measures how late this process is: it is a timer that hands over to
// another goroutine each time it fires, as a deadline does.
type Clock struct {
	mu    sync.Mutex
	timer *time.Timer
	over  bool
	due   time.Time // of the beat under way
	late  []lateness
}

// lateness is a beat that came late: when, and by how much.
type lateness struct {
	at time.Time
	by time.Duration
}

// Beat is the time between two measurements.
const Beat = 10 * time.Millisecond

// StartClock starts a clock.
func StartClock() (c *Clock, stop func()) {
	c = &Clock{due: time.Now().Add(Beat)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(Beat, func() { go c.beat() })
	return c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.timer.Stop()
	}
}

func (c *Clock) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.note(time.Now())
		c.timer.Reset(Beat)
	}
}

// note ends a beat and begins the next; c.mu is held.
func (c *Clock) note(now time.Time) {
	if by := now.Sub(c.due); by > time.Millisecond {
		c.late = append(c.late, lateness{now, by})
	}
	c.due = now.Add(Beat)
}

// Worst returns the longest delay of a beat since then, including the one under
// way.
func (c *Clock) Worst(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.worst(since)
}

func (c *Clock) worst(since time.Time) time.Duration {
	most := max(0, time.Since(c.due))
	for _, l := range slices.Backward(c.late) {
		if !l.at.After(since) {
			break
		}
		most = max(most, l.by)
	}
	return most
}

// Slack is for how long this process was late since then: what is measured has
// to wait for a processor once or twice more often than the clock has, and
// takes more steps the longer it lasts.
func (c *Clock) Slack(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	slack := 2 * c.worst(since)
	for _, l := range c.late {
		if l.at.After(since) && l.by > Beat {
			slack += l.by
		}
	}
	return slack
}
