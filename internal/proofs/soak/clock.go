package soak

import (
	"context"
	"slices"
	"sync"
	"time"
)

// clock measures by how much timers of this process are late, as they are on a
// busy machine.
type clock struct {
	mu   sync.Mutex
	late []lateness // of the last seconds
}

type lateness struct {
	at time.Time
	by time.Duration
}

const (
	clockStep   = 10 * time.Millisecond
	clockWindow = 5 * time.Second
)

func (c *clock) run(ctx context.Context) {
	for begin := time.Now(); pause(ctx, clockStep); begin = time.Now() {
		c.note(time.Now(), time.Since(begin)-clockStep)
	}
}

// note keeps delays that are large enough to matter.
func (c *clock) note(now time.Time, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = slices.DeleteFunc(c.late, func(l lateness) bool { return now.Sub(l.at) > clockWindow })
	if by > clockStep {
		c.late = append(c.late, lateness{now, by})
	}
}

// lag is the longest delay of a timer in the last seconds.
func (c *clock) lag() (most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.late {
		most = max(most, l.by)
	}
	return most
}
