package soak

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/history"
)

// writeWorker writes, and sometimes goes on as a reader.
func writeWorker(w *worker) (cycle, error) {
	l, err := rwlock.New(w.client, w.key)
	return func(ctx context.Context) error {
		g, err := obtain(ctx, w, history.Exclusive, l.AcquireWrite)
		if err != nil {
			return err
		}
		stay(ctx, w, g)
		if w.rng.IntN(3) > 0 {
			return w.release(g.Release)
		}
		limited, cancel := w.patience(ctx)
		defer cancel()
		read, err := downgrade(w, g, func() (history.Holder, error) { return holderOf(g.Hold.Downgrade(limited)) })
		if err != nil {
			w.count("downgrades that failed")
			return err
		}
		w.count("downgrades")
		w.heed(w.name, read.Hold)
		stay(ctx, w, read)
		return w.release(read.Release)
	}, err
}

// holderOf keeps a hold that is nil from looking like one that is there.
func holderOf(h *coord.Hold, err error) (history.Holder, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

func readWorker(w *worker) (cycle, error) {
	l, err := rwlock.New(w.client, w.key)
	return func(ctx context.Context) error { return occupy(ctx, w, history.Shared, l.AcquireRead) }, err
}

// downgrade turns a writer's grant into a reader's. On record the read hold
// begins before the call that makes it: who writes may read, and nobody else may
// write until the read hold ends. A writer that gets in between shows.
func downgrade[H history.Holder](w *worker, g *history.Grant[H], change func() (history.Holder, error)) (read *history.Grant[*passing], err error) {
	p := &passing{now: g.Hold, done: make(chan struct{})}
	err = g.End(history.Release, nil, func() (err error) {
		if read, err = history.Acquire(w.rec, w.name, w.key, history.Shared, func() (*passing, error) { return p, nil }); err != nil {
			return err
		}
		shared, err := change()
		p.become(shared, err)
		return err
	})
	return read, err
}

// passing is a hold while it is downgraded and afterwards.
type passing struct {
	done chan struct{}

	mu  sync.Mutex
	now history.Holder // the writer's, then the reader's
	err error          // of a downgrade that failed
}

// become ends the downgrade.
func (p *passing) become(shared history.Holder, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		// Not wrapped: whatever the cause, the last check counts, not the window.
		p.err = errors.New(err.Error())
		close(p.done)
		return
	}
	p.now = shared
	go func() {
		<-shared.Done()
		close(p.done)
	}()
}

func (p *passing) current() (history.Holder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.err
}

// Done is closed when the read hold ends, or does not come to be.
func (p *passing) Done() <-chan struct{} { return p.done }

// Err is the hold's.
func (p *passing) Err() error {
	h, err := p.current()
	if err != nil {
		return err
	}
	return h.Err()
}

// Deadline is the hold's.
func (p *passing) Deadline() time.Time {
	h, _ := p.current()
	return h.Deadline()
}

// Release releases the read hold.
func (p *passing) Release(ctx context.Context) error {
	h, _ := p.current()
	return h.Release(ctx)
}
