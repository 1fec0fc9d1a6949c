package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Holder is what a hold of any recipe offers, and an item of a queue and a
// member of a double barrier. A Deadline says more exactly when a hold ended.
type Holder interface {
	Done() <-chan struct{}
	Err() error
}

// Grant is a hold whose end is recorded, however it comes.
type Grant[H Holder] struct {
	Hold     H
	Op       *Op
	Of       Record // the acquisition, as it was called
	released atomic.Bool
	lost     sync.Once
	watched  chan struct{} // closed when the end is on record

	mu   sync.Mutex
	sure time.Time // when it was known last that the hold could be trusted
	done time.Time // when Done was closed, as seen
}

// Acquire records an acquisition and, if it succeeds, the life of its hold.
func Acquire[H Holder](
	r *Recorder, client, key string, kind Kind, acquire func() (H, error), details ...Detail,
) (*Grant[H], error) {
	op := r.Call(client, key, kind, details...)
	h, err := acquire()
	if err != nil {
		op.End(Failed, err)
		return nil, err
	}
	return Granted(op, h), nil
}

// Granted records that an acquisition succeeded, and the life of its hold. The
// token is recorded if the hold has one.
func Granted[H Holder](op *Op, h H, details ...Detail) *Grant[H] {
	if t, ok := any(h).(interface{ Token() int64 }); ok {
		details = append(details, Token(t.Token()))
	}
	op.End(OK, nil, details...)
	return Watch(op, h)
}

// Watch records the life of a hold whose acquisition is on record. A goroutine
// waits for the hold's end.
func Watch[H Holder](op *Op, h H) *Grant[H] {
	g := &Grant[H]{Hold: h, Op: op, Of: op.record(), watched: make(chan struct{}), sure: op.rec.begin}
	if g.Err() != nil {
		op.Lost(op.rec.begin, h.Err()) // before it could be trusted
	}
	go g.watch()
	return g
}

func (g *Grant[H]) watch() {
	defer close(g.watched)
	<-g.Hold.Done()
	g.mu.Lock()
	g.done = time.Now()
	g.mu.Unlock()
	if g.released.Load() {
		return
	}
	if deadline := g.deadline(); errors.Is(g.Err(), coord.ErrWindowOver) && !deadline.IsZero() {
		g.Op.rec.signalled(time.Since(deadline))
	}
}

// deadline is the end of the hold's window; zero if the hold does not say.
func (g *Grant[H]) deadline() time.Time {
	if d, ok := any(g.Hold).(interface{ Deadline() time.Time }); ok {
		return d.Deadline()
	}
	return time.Time{}
}

// Trusted reports whether the hold can be trusted now, and records its end if
// not.
func (g *Grant[H]) Trusted() bool { return g.Err() == nil }

// Err is the hold's, and records its end.
func (g *Grant[H]) Err() error {
	now, deadline := time.Now(), g.deadline()
	err := g.Hold.Err()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.sure = now
	case g.Op.rec.byChecks && (deadline.IsZero() || !errors.Is(err, coord.ErrWindowOver)):
		g.lost.Do(func() { g.Op.Lost(g.sure, err) })
	default:
		if deadline.IsZero() {
			deadline = g.done // an end that was under way may return much later
		}
		if !deadline.IsZero() && deadline.Before(g.sure) {
			deadline = g.sure // even if the hold's window ends earlier: it was trusted then
		}
		g.lost.Do(func() { g.Op.Lost(deadline, err) })
	}
	return err
}

// Release records the release and carries it out. It is to be called once, of a
// hold that has such a method.
func (g *Grant[H]) Release(ctx context.Context) error {
	return g.ReleaseBy(ctx, any(g.Hold).(interface{ Release(context.Context) error }).Release)
}

// ReleaseBy is Release of a hold whose method for that has another name.
func (g *Grant[H]) ReleaseBy(ctx context.Context, release func(context.Context) error) error {
	return g.End(Release, nil, func() error { return release(ctx) })
}

// End records a way to give the grant up, such as an ack, and carries it out.
// unknown reports whether the error leaves the outcome open; nil stands for
// always.
func (g *Grant[H]) End(kind Kind, unknown func(error) bool, end func() error) error {
	op := g.Ends(kind)
	err := end()
	switch {
	case err == nil:
		op.End(OK, nil)
	case unknown == nil || unknown(err):
		op.End(Unknown, err)
	default:
		op.End(Failed, err)
		g.released.Store(false) // its end is still to come, or to be put on record
		_ = g.Err()
	}
	return err
}

// Ends records the call that gives the grant up, whose return the caller
// records.
func (g *Grant[H]) Ends(kind Kind) *Op {
	op := g.Op.rec.Call(g.Of.Client, g.Of.Key, kind, Of(g.Op))
	_ = g.Err() // or the loss may not be on record yet
	g.released.Store(true)
	return op
}

// Recorded is closed when the end of the hold is on record.
func (g *Grant[H]) Recorded() <-chan struct{} { return g.watched }

// Write is one addition to a counter by a transaction of an exclusive holder.
type Write struct{ Zxid, Token, Value int64 }

// Fence keeps what exclusive holders wrote by transactions, by the servers' own
// order. It is safe for concurrent use.
type Fence struct {
	mu     sync.Mutex
	writes map[string][]Write
}

// Wrote adds a write.
func (f *Fence) Wrote(key string, w Write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes == nil {
		f.writes = map[string][]Write{}
	}
	f.writes[key] = append(f.writes[key], w)
}

// Stale counts writes, and describes each that came after a later holder's
// write, or undid another.
func (f *Fence) Stale() (total int, stale []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, all := range f.writes {
		slices.SortFunc(all, func(a, b Write) int { return cmp.Compare(a.Zxid, b.Zxid) })
		total += len(all)
		for i := 1; i < len(all); i++ {
			if before, w := all[i-1], all[i]; w.Token < before.Token || w.Value <= before.Value {
				stale = append(stale, fmt.Sprintf("%s: %+v was followed by %+v", key, before, w))
			}
		}
	}
	return total, stale
}
