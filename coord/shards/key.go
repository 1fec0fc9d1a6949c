package shards

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Func works for one key. Its context ends when the key is lost; see
// [Draining] for how it is asked to let the key go.
type Func = func(ctx context.Context, key string, h coord.Held) error

// worker is a key that the member stands in line for, or owns.
type worker struct {
	*term
	key     string
	wanted  context.Context // ends when the plan names another
	cancel  context.CancelFunc
	drop    func()
	dropped <-chan struct{} // closed when the key is to be drained without a request
	quiet   bool            // asks nobody: whoever asked for the key may know a newer plan
}

// newWorker makes a worker; t.mu is held.
func newWorker(t *term, key string) *worker {
	w := &worker{term: t, key: key}
	w.wanted, w.cancel = context.WithCancel(t.ctx)
	dropped := make(chan struct{})
	w.dropped, w.drop = dropped, sync.OnceFunc(func() { close(dropped) })
	yielded, has := t.yielded[key]
	w.quiet = has && yielded == t.planned
	return w
}

// own waits for the key, has the function work for it, and releases it.
func (w *worker) own() {
	var h *coord.Hold
	patient := func(ctx context.Context) context.Context { return ctx }
	err := w.insist(w.wanted, w.waits, func(ctx context.Context) (err error) {
		h, err = w.claim(patient(ctx))
		patient = recipe.Patient // a foreign contender was told of: now wait for its end
		return err
	})
	w.well(w.key)
	if err != nil {
		return
	}
	if w.wanted.Err() == nil {
		w.serve(h)
	}
	releasing, cancel := recipe.Grace(w.ctx)
	defer cancel()
	_ = h.Release(releasing) // a deletion that is not confirmed goes on in the background
}

// waits reports why the member cannot get the key now.
func (w *worker) waits(failed attempt) { w.trouble(w.key, LifeWaiting, KeyWaits, failed) }

// claim stands in line for the key until it is owned, or the plan names
// another. It asks the first in line to give the key up, which drains it.
func (w *worker) claim(ctx context.Context) (*coord.Hold, error) {
	line, asked := w.Line(w.key), ""
	ctx, cancel := context.WithCancel(ctx) // ends the asking
	defer cancel()
	if w.quiet { // for a time, in which whoever asked for the key is to read a newer plan
		defer time.AfterFunc(w.client.Info().SessionTimeout, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.yielded, w.key)
			w.cancel() // begins anew, and asks
		}).Stop()
	}
	rule := func(ahead []coord.Contender) ([]int, bool) {
		wait, granted := coord.First(ahead)
		if !granted && !w.quiet && ahead[0].Name != asked {
			asked = ahead[0].Name
			node := line.Dir + "/" + asked
			w.busy.Go(func() { w.ask(ctx, node) })
		}
		return wait, granted
	}
	return recipe.Acquire(ctx, w.client, &coord.Spec{Line: line, Kind: "lock", Recipe: w.path, Exclusive: true}, rule)
}

// ask asks a contender to give its turn up, until it is gone.
func (w *worker) ask(ctx context.Context, node string) {
	failed := false
	told := func(a attempt) {
		failed = true
		w.waits(a)
	}
	_ = w.insist(ctx, told, func(ctx context.Context) error {
		return recipe.Retry(ctx, w.client, func(ctx context.Context) error { return inspect.Revoke(ctx, w.client, node) })
	})
	if failed {
		w.well(w.key)
	}
}

// lastMoment is how long a function that has not returned in time has to return
// after its context has ended.
const lastMoment = time.Second

// serve calls the function, again if it fails, and returns when the key is to
// be released.
func (w *worker) serve(h *coord.Hold) {
	held := h.Context(w.ctx)
	draining := make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	held, end := context.WithCancel(held)
	defer end()
	watching.Go(func() {
		select {
		case <-h.Revoked():
			w.mu.Lock()
			w.yielded[w.key] = w.planned
			w.mu.Unlock()
		case <-w.dropped:
		case <-held.Done():
			return
		}
		close(draining)
	})
	for pause := new(backoff); ; {
		begun := time.Now()
		err, returned := w.call(held, h, draining)
		if !returned {
			return
		}
		var again <-chan time.Time // never
		if err != nil && !isClosed(draining) && held.Err() == nil {
			if w.failFast {
				w.fail(err)
				return
			}
			failed := pause.failed(err, time.Since(begun))
			w.trouble(w.key, LifeFailing, KeyFailed, failed)
			again = time.After(failed.again)
		}
		select {
		case <-again:
		case <-draining:
			w.well(w.key)
			return
		case <-held.Done():
			w.well(w.key)
			return
		}
	}
}

// call calls the function once. It reports whether that has returned.
func (w *worker) call(held context.Context, h *coord.Hold, draining <-chan struct{}) (err error, returned bool) {
	ctx, end := context.WithCancelCause(context.WithValue(held, drainingKey{}, draining))
	defer end(nil)
	done := make(chan error, 1)
	go func() {
		err := errors.New("the function exited its goroutine (runtime.Goexit)")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the function panicked: %v\n%s", p, debug.Stack())
			}
			done <- err
		}()
		err = w.f(ctx, w.key, h)
	}()
	ended, late, warned := ctx.Done(), (<-chan time.Time)(nil), false
	for {
		select {
		case err := <-done:
			return err, true
		case <-draining:
			draining, ended, late = nil, nil, time.After(w.drain)
		case <-ended:
			draining, ended, late = nil, nil, time.After(w.drain)
		case <-late:
			if warned {
				w.giveUp(h, done)
				return nil, false
			}
			warned, late = true, time.After(lastMoment)
			end(ErrDrainTimeout)
		}
	}
}

// giveUp lets other members have the key of a function that has not returned.
// This member takes the key again only after the function has returned.
func (w *worker) giveUp(h *coord.Hold, done <-chan error) {
	w.trouble(w.key, LifeGivenUp, KeyGivenUp, attempt{err: ErrDrainTimeout, count: 1})
	recipe.Invalidate(h, ErrDrainTimeout)
	r := w.run
	go func() {
		<-done
		r.well(w.key)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.term != nil {
			r.term.startIfOwn(w.key)
		}
	}()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
