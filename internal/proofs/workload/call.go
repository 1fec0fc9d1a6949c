package workload

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// call is a call of a recipe.
type call struct {
	w    *Worker
	ctx  context.Context
	stop context.CancelFunc
	ends time.Time // ctx's deadline; zero if it has none
	must bool      // ctx ends only if the call is stuck
}

// call begins a call. As long as there are faults, it often has a deadline or
// is cancelled.
func (w *Worker) call() *call {
	c, now := &call{w: w}, time.Now()
	early := upTo(w.Rand, w.Pace.Early)
	switch how := w.Rand.Float64(); {
	case !w.isCalm() && how < w.Pace.Deadlines:
		w.Count("deadline")
		if Chance(w.Rand, 0.1) {
			early = 0
		}
		c.ends = now.Add(early)
	case !w.isCalm() && how < w.Pace.Deadlines+w.Pace.Cancels:
		if early /= 2; Chance(w.Rand, 0.3) {
			early = time.Duration(w.Rand.IntN(5)) * time.Millisecond
		}
		return c.cancelled(early)
	case w.Pace.Patience > 0:
		c.ends = now.Add(w.Pace.Patience)
	default:
		c.ctx, c.stop = context.WithCancel(w.ctx)
		return c
	}
	c.ctx, c.stop = context.WithDeadline(w.ctx, c.ends)
	return c
}

func (c *call) cancelled(after time.Duration) *call {
	ctx, cancel := context.WithCancel(c.w.ctx)
	c.ends = time.Now().Add(after)
	timer := time.AfterFunc(after, func() {
		c.w.Count("cancellation")
		cancel()
	})
	c.ctx, c.stop = ctx, func() {
		timer.Stop()
		cancel()
	}
	return c
}

// certain begins a call that is not given up half-way.
func (w *Worker) certain() *call {
	c := &call{w: w, must: true}
	c.ctx, c.stop = context.WithTimeout(context.WithoutCancel(w.ctx), w.Pace.Certain)
	return c
}

// mostlyCertain begins a call whose outcome is to be known in most cases.
func (w *Worker) mostlyCertain() *call {
	if Chance(w.Rand, 0.3) {
		return w.call()
	}
	return w.certain()
}

// untilCalm has the call end with the last fault, too.
func (c *call) untilCalm() *call {
	ctx, cancel := context.WithCancel(c.ctx)
	stop := c.stop
	c.ctx, c.stop = ctx, func() {
		cancel()
		stop()
	}
	if !c.w.isCalm() {
		go func() {
			select {
			case <-c.w.Calm:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return c
}

// held notes that the call has acquired, and has no deadline from then on.
func (c *call) held() { c.ends = time.Time{} }

// end judges a call that has just returned, with an error or without.
func (c *call) end(what string, err error, allowed ...error) {
	defer c.stop()
	w := c.w
	if late := time.Since(c.ends); !c.ends.IsZero() && late > 0 {
		w.Late(w, what, late, err)
	}
	switch {
	case err == nil, slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(err, e) }), w.Expected(w, err):
	case c.must && c.ctx.Err() != nil:
		w.Violated("%s: %s has not ended for %v: %v", w.Name, what, w.Pace.Certain, err)
	case c.ctx.Err() == nil || !errors.Is(err, c.ctx.Err()):
		w.Violated("%s: %s failed: %v", w.Name, what, err)
	}
	if err != nil && c.ctx.Err() != nil {
		w.Count("calls ended by their context")
	}
}

// release releases, sometimes with a context that has ended or soon does, and
// judges the call.
func (w *Worker) release(what string, release func(context.Context) error) {
	limit := time.Hour
	switch how := w.Rand.Float64(); {
	case how < w.Pace.Rushed:
		limit = 0
	case how < 2*w.Pace.Rushed:
		limit = w.share(0, 0.2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	err := release(ctx)
	if over := time.Since(begun) - w.Pace.Timeout; over > 0 {
		w.Late(w, "release of "+what, over, err)
	}
	if err != nil && !errors.Is(err, coord.ErrUnconfirmed) {
		w.Violated("%s: release of %s: %v", w.Name, what, err)
	}
	if w.Count("releases"); err != nil {
		w.Count("releases not confirmed")
	}
}
