package soak

import (
	"fmt"
	"sync"
	"time"
)

// tally counts events, and keeps problems.
type tally struct {
	mu       sync.Mutex
	faults   map[string]int
	missed   map[string]int // faults that were tried and did not happen
	counts   map[string]int
	longest  map[string]time.Duration
	problems []string
}

func newTally() *tally {
	return &tally{faults: map[string]int{}, missed: map[string]int{}, counts: map[string]int{}, longest: map[string]time.Duration{}}
}

// fault counts a fault that happened n times; n = 0 means that it was tried and
// did not happen.
func (t *tally) fault(kind string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[kind] += n
	if n == 0 {
		t.missed[kind]++
	}
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

func (t *tally) total() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.faults {
		n += k
	}
	return n
}

// last keeps the longest duration of its kind.
func (t *tally) last(what string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest[what] = max(t.longest[what], d)
}

// problem keeps a failure that no rule of the history covers.
func (t *tally) problem(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}
