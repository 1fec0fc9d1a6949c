package history

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Holder is what a hold of any recipe offers.
type Holder interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Release(ctx context.Context) error
}

// Grant is a hold whose end is recorded, however it comes.
type Grant[H Holder] struct {
	Hold     H
	Op       *Op
	client   string
	key      string
	released atomic.Bool
	lost     sync.Once
	watched  chan struct{} // closed when the end is on record

	mu   sync.Mutex
	sure time.Time // when it was known last that the hold could be trusted
}

// Acquire records an acquisition and, if it succeeds, the life of its hold. The
// token is recorded if the hold has one. A goroutine waits for the hold's end.
func Acquire[H Holder](r *Recorder, client, key string, kind Kind, acquire func() (H, error), details ...Detail) (*Grant[H], error) {
	op := r.Call(client, key, kind, details...)
	h, err := acquire()
	if err != nil {
		op.End(Failed, err)
		return nil, err
	}
	if t, ok := any(h).(interface{ Token() int64 }); ok {
		op.End(OK, nil, Token(t.Token()))
	} else {
		op.End(OK, nil)
	}
	g := &Grant[H]{Hold: h, Op: op, client: client, key: key, watched: make(chan struct{}), sure: r.begin}
	if g.Err() != nil {
		op.Lost(r.begin, h.Err()) // before anybody could trust it
	}
	go g.watch()
	return g, nil
}

func (g *Grant[H]) watch() {
	defer close(g.watched)
	<-g.Hold.Done()
	if g.released.Load() {
		return
	}
	if errors.Is(g.Err(), coord.ErrWindowOver) {
		g.Op.rec.signalled(time.Since(g.Hold.Deadline()))
	}
}

// Trusted tells whether the hold can be trusted now, and records its end if
// not.
func (g *Grant[H]) Trusted() bool { return g.Err() == nil }

// Err is the hold's, and records its end.
func (g *Grant[H]) Err() error {
	now := time.Now()
	err := g.Hold.Err()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.sure = now
	case g.Op.rec.byChecks && !errors.Is(err, coord.ErrWindowOver):
		g.lost.Do(func() { g.Op.Lost(g.sure, err) })
	default:
		end := g.Hold.Deadline()
		if end.Before(g.sure) {
			end = g.sure // whatever the hold says of its window: it was trusted then
		}
		g.lost.Do(func() { g.Op.Lost(end, err) })
	}
	return err
}

// Release records the release and carries it out. It is to be called once.
func (g *Grant[H]) Release(ctx context.Context) error {
	return g.End(Release, nil, func() error { return g.Hold.Release(ctx) })
}

// End records a way to give the grant up, such as an ack, and carries it out.
// unknown tells whether the error leaves the outcome open; nil stands for
// always.
func (g *Grant[H]) End(kind Kind, unknown func(error) bool, end func() error, details ...Detail) error {
	op := g.Op.rec.Call(g.client, g.key, kind, append([]Detail{Of(g.Op)}, details...)...)
	_ = g.Err() // or the loss may not be on record yet
	g.released.Store(true)
	err := end()
	switch {
	case err == nil:
		op.End(OK, nil)
	case unknown == nil || unknown(err):
		op.End(Unknown, err)
	default:
		op.End(Failed, err)
	}
	return err
}

// Recorded is closed when the end of the hold is on record.
func (g *Grant[H]) Recorded() <-chan struct{} { return g.watched }
