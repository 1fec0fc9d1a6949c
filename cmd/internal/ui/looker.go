package ui

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// looker makes looks that all viewers share: one at a time, every after the
// last one ended, and only when a viewer asks, unless always is set.
type looker struct {
	ctx           context.Context // ends the looks
	look          func(context.Context) (any, error)
	every, within time.Duration
	acts          []string
	always        bool
	looks         sync.WaitGroup

	mu     sync.Mutex
	done   chan struct{} // closed when no look is under way
	began  time.Time     // the last look
	next   time.Time     // not before then
	seen   sights
	seenAt time.Time // when the look began that saw it
	failed error     // the last look

	changes int // renewals so far
	begun   int // changes when the last look began
}

func newLooker(ctx context.Context, c Config) *looker {
	done := make(chan struct{})
	close(done)
	return &looker{
		ctx: ctx, look: c.Look, every: c.Every, within: c.Within, acts: slices.AppendSeq([]string{}, maps.Keys(c.Acts)),
		done: done, always: c.Always, seen: sights{last: json.RawMessage("null")},
	}
}

// join waits for the look that is under way.
func (l *looker) join() { l.looks.Wait() }

// renew has the next viewer that asks wait for a look that begins from now on.
func (l *looker) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Time{}
	l.changes++
}

// keep looks, if always is set, until ctx ends.
func (l *looker) keep() {
	if !l.always {
		return
	}
	for next := time.NewTicker(l.every); l.ctx.Err() == nil; {
		l.start()
		select {
		case <-next.C:
		case <-l.ctx.Done():
		}
	}
}

// state is what viewers see.
type state struct {
	Seen    json.RawMessage `json:"seen"`    // null: nothing yet
	Whole   bool            `json:"whole"`   // false: only what has changed since the version that the viewer has
	Version int             `json:"version"` // for the next request
	Now     float64         `json:"now"`     // Unix seconds
	Age     float64         `json:"age"`     // of what was seen, in seconds
	Old     bool            `json:"old"`     // the last look failed, or the current one takes too long
	Error   string          `json:"error"`   // of the last look
	Every   float64         `json:"every"`   // seconds
	Acts    []string        `json:"acts"`    // the acts that the page may ask for
}

const (
	patience = 2 * time.Second // how long a viewer waits for the look under way
	slow     = 2 * patience    // a look that takes longer is slow
)

// hasNothing is the version of a viewer that has nothing yet, and takes what
// was seen last.
const hasNothing = 0

// state waits up to patience for the look under way, if there is one. A viewer
// that has nothing does not wait if a recent look can be shown.
func (l *looker) state(ctx context.Context, has int) state {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range 2 { // the look under way may have begun before a renewal
		over := l.start()
		if has == hasNothing && l.isFresh() {
			break
		}
		select {
		case <-over:
		case <-waiting.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := state{
		Version: l.seen.version, Now: float64(time.Now().UnixMilli()) / 1000, Every: l.every.Seconds(), Acts: l.acts,
		Old: l.failed != nil || l.isSlow(),
	}
	s.Seen, s.Whole = l.seen.since(has)
	if l.failed != nil {
		s.Error = l.failed.Error()
	}
	if !l.seenAt.IsZero() {
		s.Age = time.Since(l.seenAt).Seconds()
	}
	return s
}

// isFresh reports whether the last look is recent enough to be shown while
// another is under way.
func (l *looker) isFresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.version > 0 && l.failed == nil && l.changes == l.begun && time.Since(l.seenAt) < 2*(l.every+slow)
}

// isSlow reports whether the look under way is slow.
func (l *looker) isSlow() bool {
	select {
	case <-l.done:
		return false
	default:
		return time.Since(l.began) >= slow
	}
}

// start begins a look if it is time to. done is closed when no look is under
// way.
func (l *looker) start() (done <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
	default:
		return l.done
	}
	if time.Now().Before(l.next) || l.ctx.Err() != nil {
		return l.done
	}
	l.done, l.began, l.begun = make(chan struct{}), time.Now(), l.changes
	l.looks.Go(l.once)
	return l.done
}

func (l *looker) once() {
	ctx, cancel := context.WithTimeout(l.ctx, l.within)
	defer cancel()
	seen, err := l.look(ctx)
	var data []byte
	if err == nil {
		data, err = json.Marshal(seen)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(l.done)
	l.failed = err
	if l.changes == l.begun {
		l.next = time.Now().Add(l.every)
	}
	if err == nil {
		l.seen.take(data)
		l.seenAt = l.began
	}
}
