package window

import (
	"sync"
	"time"
)

// Window is the trust window of one session. All times are moments of the
// session's [Clock].
type Window struct {
	mu       sync.Mutex
	timeout  time.Duration // T, negotiated
	lag      time.Duration // the longest time believed to pass between two of the leader's pings
	base     time.Time     // the leader heard of the session at or after this
	attached time.Time     // when the current connection's handshake was sent
	wrote    time.Time     // when the newest acknowledged write was sent
	trip     time.Duration // how long its acknowledgement took
	answers  []answer      // ascending, thinned out, none older than T
}

// answer is when a request was sent, and when its answer came: the follower
// heard of the session in between.
type answer struct {
	sent, came time.Time
	write      bool // acknowledged by a quorum
}

// Lag returns the longest time that is believed to pass between two pings of
// the leader: half a tick, and the same again, but no more than T/8, for a
// leader that is late. A tick that is not known (0) is taken for T/2: unless
// servers are configured otherwise (minSessionTimeout), it is not longer.
func Lag(timeout, tick time.Duration) time.Duration {
	if tick == 0 {
		tick = timeout / 2
	}
	return tick/2 + min(tick/2, timeout/8)
}

// Skew is taken off the window for clocks that run at different speeds: 2 % is
// far beyond what quartz does.
func Skew(timeout time.Duration) time.Duration { return timeout / 50 }

// Reaction is taken off the window for the time it takes to learn of its end
// and to stop.
func Reaction(timeout time.Duration) time.Duration { return timeout / 50 }

// Create begins a session whose handshake was sent at sent.
func (w *Window) Create(sent time.Time, timeout, lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeout, w.lag = timeout, lag
	w.base, w.attached, w.wrote = sent, sent, sent
	w.answers = append(w.answers[:0], answer{sent, sent, false})
}

// Attach notes that a reconnect was accepted whose handshake was sent at sent.
func (w *Window) Attach(sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attached = sent
}

// Answer notes that a request sent at sent was answered at came; write says
// that a quorum acknowledged it. It reports whether that opened a window that
// was closed.
func (w *Window) Answer(sent, came time.Time, write bool) (opened bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	closed := !came.Before(w.end())
	w.answered(sent, came, write)
	return closed && came.Before(w.end())
}

func (w *Window) answered(sent, came time.Time, write bool) {
	defer w.keep(answer{sent, came, write}) // it proves nothing by itself
	if !write {
		return
	}
	w.wrote, w.trip = later(w.wrote, sent), came.Sub(sent)
	w.base = later(w.base, w.attached)
	for i := len(w.answers) - 1; i >= 0; i-- {
		if first := w.answers[i]; first.write && !first.came.After(sent) {
			w.advance(first.sent.Add(-w.lag))
			return
		}
	}
}

// advance counts the requests whose answers came by limit, and forgets those
// before the newest of them.
func (w *Window) advance(limit time.Time) {
	counted := 0
	for i, a := range w.answers {
		if a.came.After(limit) {
			break
		}
		counted = i
		w.base = later(w.base, a.sent)
	}
	w.answers = w.answers[counted:]
}

// keep remembers an answer, unless there is one of its kind that is hardly
// older, and forgets answers too old to open a window.
func (w *Window) keep(a answer) {
	for len(w.answers) > 1 && a.sent.Sub(w.answers[0].sent) > w.timeout {
		w.answers = w.answers[1:]
	}
	for i := len(w.answers) - 1; i >= 0; i-- {
		if a.sent.Sub(w.answers[i].sent) >= w.timeout/100 {
			break
		}
		if w.answers[i].write || !a.write {
			return
		}
	}
	w.answers = append(w.answers, a)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// End returns the end of the window: a moment of the session's clock, or zero
// as long as there is no session.
func (w *Window) End() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timeout == 0 {
		return time.Time{}
	}
	return w.end()
}

func (w *Window) end() time.Time {
	return w.base.Add(w.timeout - Skew(w.timeout) - Reaction(w.timeout))
}

// Wrote returns when the newest acknowledged write was sent.
func (w *Window) Wrote() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote
}

// Interval returns how long after a write at wrote the next one is due, to keep
// the window open: T/8, or less, to make a whole number of them span the lag
// and a round trip of T/40. The window spends three round trips: longer ones
// leave no room for long intervals. Neither does a window that has fallen
// behind, after an outage or in a session that has long only read.
func (w *Window) Interval(wrote time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	roundTrip := w.timeout / 40
	interval, span := w.timeout/8, w.lag+roundTrip
	if span > interval {
		interval = span / ((span + interval - 1) / interval)
	}
	if w.trip > roundTrip {
		return interval / 4
	}
	behind := w.base.Add(max(span, interval) + 2*interval + roundTrip).Sub(wrote)
	switch {
	case behind >= interval:
		return interval
	case len(w.answers) > 1: // two writes count the next answer, once it is as old as the lag
		if counts := w.answers[1].came.Add(w.lag).Sub(wrote); counts > 0 {
			return min(interval, counts)
		} else if wrote.Sub(w.wrote) < interval { // it is answered soon
			return w.trip + w.timeout/100
		}
	}
	return max(interval/4, behind)
}

// Clock is the clock of a session: it runs on while the machine is suspended,
// and cannot be set. Its moments compare with each other only; [Clock.Wall]
// makes them times that compare with time.Now.
//
// It misses a pause that no clock of the machine sees: a virtual machine that
// is restored from a snapshot, or migrated, may have stood still for a while.
type Clock struct {
	// Suspended returns how long the machine has been suspended so far; nil
	// means this machine's time.
	Suspended func() time.Duration
}

// Now returns the current moment.
func (c Clock) Now() time.Time { return c.at(time.Now()) }

func (c Clock) at(now time.Time) time.Time { return now.Add(c.suspended()) }

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
	mono  time.Time // the last readings, where there is only the wall clock
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
