package zktest

import (
	"fmt"
	"testing"
	"time"
)

// pollEvery is how often a condition is looked at.
const pollEvery = 5 * time.Millisecond

// Eventually fails the test unless cond becomes true within the given time.
// cond runs in the calling goroutine, at once and then every few milliseconds,
// so it may use require and t.
func Eventually(t testing.TB, within time.Duration, cond func() bool, format string, args ...any) {
	t.Helper()
	if !poll(within, cond) {
		t.Fatalf("not within %v: %s", within, fmt.Sprintf(format, args...))
	}
}

// Receive returns the next value of a channel and fails the test if none comes
// within the given time. A closed channel gives the zero value, so it also
// waits for a Done channel.
func Receive[T any](t testing.TB, within time.Duration, ch <-chan T, format string, args ...any) T {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
	}
	t.Fatalf("not within %v: %s", within, fmt.Sprintf(format, args...))
	panic("unreachable")
}

// poll reports whether cond became true in time. It looks once more at the end,
// for a busy machine.
func poll(within time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return cond()
		}
	}
}
