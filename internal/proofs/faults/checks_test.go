package faults

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// leavesNothing checks at the end of a scenario, while its clients are still
// open, that none of them has left a node (o) or a watch (w).
func (s scene) leavesNothing() {
	s.Helper()
	require.Empty(s, s.drained(progress, s.ephemerals), "ephemeral nodes are left")
	require.Empty(s, s.drained(progress, s.w.Watched), "watches are left")
}

// drained waits until there is nothing to list, and returns what there is after
// the given time, and what a busy machine takes beside.
func (s scene) drained(within time.Duration, list func() []string) (left []string) {
	s.Helper()
	begun := time.Now()
	for {
		over := time.Since(begun) > within+s.control.slack(begun)
		if left = list(); len(left) == 0 || over {
			return left
		}
		s.wait(5*time.Millisecond, time.Now())
	}
}

// ephemerals lists the scenario's ephemeral nodes, whatever their ACL.
func (s scene) ephemerals() (found []string) {
	s.Helper()
	root := s.w.Path("") + "/"
	switch s.w.Backend() {
	case zktest.Embedded:
		for _, node := range s.w.Embedded().Nodes() {
			if node.Stat.EphemeralOwner != 0 && strings.HasPrefix(node.Path, root) {
				found = append(found, node.Path)
			}
		}
		return found
	case zktest.Real:
		return dumped(s.w.Real(), root)
	}
	for _, server := range s.w.Ensemble().Servers() {
		found = append(found, dumped(server, root)...)
	}
	return found
}

// dumped lists the ephemeral nodes below root that a server has.
func dumped(server *zktest.Server, root string) (found []string) {
	answer, err := server.FourLetter("dump")
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(answer) {
		if node := strings.TrimSpace(line); strings.HasPrefix(node, root) {
			found = append(found, node)
		}
	}
	return found
}

// label marks the calling goroutine and all that it starts from now on, and
// theirs. What a callback of a timer starts is not marked.
func (s scene) label(value string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, value)))
}

const labelKey = "scenario"

// endsEveryGoroutine checks after a scenario that its clients, which are closed
// by then, have left no goroutine (g).
func (s scene) endsEveryGoroutine() {
	s.Helper()
	s.label(s.Name())
	s.Cleanup(func() {
		left := s.drained(T, func() []string { return goroutines(s.Name()) })
		require.Empty(s, left, "goroutines are left")
	})
}

var countOfStack = regexp.MustCompile(`(?m)^(\d+) @`)

// goroutines lists the stacks of the marked goroutines that are in the library
// or the client library.
func goroutines(label string) (stacks []string) {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		marked := strings.Contains(stack, fmt.Sprintf("%q:%q", labelKey, label))
		ours := strings.Contains(stack, "zkcoord/zkcoord/coord") || strings.Contains(stack, "go-zookeeper/zk")
		if count := countOfStack.FindStringSubmatch(stack); marked && ours && count != nil {
			n, _ := strconv.Atoi(count[1])
			stacks = append(stacks, slices.Repeat([]string{stack}, n)...)
		}
	}
	return stacks
}

// admin is the world's client for tampering. It outlives the scenario, so its
// goroutines are not marked.
func (s scene) admin() *zk.Conn {
	s.Helper()
	made := make(chan *zk.Conn, 1)
	go func() {
		defer close(made)
		pprof.SetGoroutineLabels(context.Background())
		made <- s.w.Admin()
	}()
	conn := <-made
	require.NotNil(s, conn)
	return conn
}

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

// slack is for how long this process was late since then: what is measured has
// to wait for a processor once or twice more often than the control has, and
// takes more steps the longer it lasts.
func (c *control) slack(since time.Time) time.Duration {
	slack := 2 * c.worst(since)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.late {
		if l.at.After(since) && l.by > beat {
			slack += l.by
		}
	}
	return slack
}

// onTime checks that something happened within a promised time from a moment
// on, or was late by no more than this process was.
func (s scene) onTime(what string, from time.Time, promised time.Duration, at time.Time) {
	s.Helper()
	slack := s.control.slack(from)
	require.LessOrEqual(s, at.Sub(from), promised+slack, "%s too late, and this process was by %v", what, slack)
}
