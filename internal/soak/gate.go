package soak

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/barrier"
)

// gate is a barrier that one worker shuts and opens. It keeps the times at which
// the barrier was certainly shut, and who passed it when, since the beginning of
// the history.
type gate struct {
	mu     sync.Mutex
	shut   []interval
	passed []passage
}

type interval struct{ from, to time.Duration }

// passage is a Wait that returned.
type passage struct {
	worker string
	interval
	shut interval // in which it began, for those that the gate should have stopped
}

// forever is the end of what has none yet.
const forever = time.Duration(1<<63 - 1)

// close tells that the barrier is shut from now on, open that it may not be
// from now on.
func (g *gate) close(now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = append(g.shut, interval{now, forever})
}

func (g *gate) open(now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut[len(g.shut)-1].to = now
}

func (g *gate) pass(worker string, from, to time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = append(g.passed, passage{worker: worker, interval: interval{from, to}})
}

// violations lists those who passed while the barrier was shut all the time.
func (g *gate) violations() (found []passage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.passed {
		i := sort.Search(len(g.shut), func(i int) bool { return g.shut[i].from >= p.from })
		if i > 0 && p.to < g.shut[i-1].to { // the times are in order, and apart
			p.shut = g.shut[i-1]
			found = append(found, p)
		}
	}
	return found
}

// keepWorker shuts the barrier and opens it. Neither is given up half-way: the
// next could not be told from what is left of the last.
func keepWorker(w *worker) (cycle, error) {
	b, err := barrier.New(w.client, w.key)
	certain := func(ctx context.Context, f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
		defer cancel()
		return f(ctx)
	}
	return func(ctx context.Context) error {
		if err := certain(ctx, b.Set); err != nil {
			w.problem("%s: Set: %v", w.name, err)
			return err
		}
		w.gate.close(time.Since(w.rec.Begin()))
		pause(ctx, w.stay())
		w.gate.open(time.Since(w.rec.Begin()))
		if err := certain(ctx, b.Remove); err != nil {
			w.problem("%s: Remove: %v", w.name, err)
			return err
		}
		pause(ctx, w.stay()/4)
		return nil
	}, err
}

// passWorker waits until the barrier is open.
func passWorker(w *worker) (cycle, error) {
	b, err := barrier.New(w.client, w.key)
	return func(ctx context.Context) error {
		limited, cancel := w.patience(ctx)
		defer cancel()
		begin := time.Now()
		err := b.Wait(limited)
		end := time.Now()
		w.ended(limited, begin, err)
		if err != nil {
			return err
		}
		w.passed(w.name, w.key, begin.Sub(w.rec.Begin()), end.Sub(w.rec.Begin()))
		pause(ctx, time.Duration(w.rng.Int64N(int64(200*time.Millisecond)))) // not again and again while it is open
		return nil
	}, err
}

// passed takes in who passed the barrier at a place.
func (r *run) passed(worker, key string, from, to time.Duration) {
	r.gate.pass(worker, from, to)
	r.pulse.grant(worker, key)
}
