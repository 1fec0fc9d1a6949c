package faults

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// prompt is the time within which a call returns after its context ended, and a
// hold ends after its window (d).
const prompt = 50 * time.Millisecond

// control is a timer that runs beside a scenario and hands over to another
// goroutine each time it fires, as a deadline does. Its delay is that of this
// process.
type control struct {
	mu   sync.Mutex
	due  time.Time // of the beat under way
	late []lateness
}

// lateness is a beat that came late: when, and by how much.
type lateness struct {
	at time.Time
	by time.Duration
}

const beat = 10 * time.Millisecond

func startControl(t *testing.T) *control {
	c := &control{due: time.Now().Add(beat)}
	quit, beats := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer close(beats)
		timer := time.NewTimer(beat)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				beats <- struct{}{}
				timer.Reset(beat)
			case <-quit:
				return
			}
		}
	})
	running.Go(func() {
		for range beats {
			c.note(time.Now())
		}
	})
	t.Cleanup(func() { close(quit); running.Wait() })
	return c
}

func (c *control) note(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by := now.Sub(c.due); by > time.Millisecond {
		c.late = append(c.late, lateness{now, by})
	}
	c.due = now.Add(beat)
}

// worst returns the longest delay of a beat since then, including the one under
// way.
func (c *control) worst(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := max(0, time.Since(c.due))
	for _, l := range c.late {
		if l.at.After(since) {
			most = max(most, l.by)
		}
	}
	return most
}

// onTime checks that something happened within a promised time from a moment
// on, or was late by no more than this process was: what is measured has to
// wait for a processor once or twice more often than the control has.
func (s scene) onTime(what string, from time.Time, promised time.Duration, at time.Time) {
	s.Helper()
	lag := s.control.worst(from)
	require.LessOrEqual(s, at.Sub(from), promised+2*lag, "%s too late; timers were up to %v late", what, lag)
}
