package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrHeldTooLong: a hold lasted longer than its [Bound] allows. The hold's Err
// wraps it with [coord.ErrLost].
var ErrHeldTooLong = errors.New("held for too long")

// Bound is how long a hold may last; the zero Bound sets no limit. When the
// time is over, the hold ends as lost ([ErrHeldTooLong]), and so do its
// contexts; then its node is deleted, and another may hold. That depends
// neither on the servers nor on the holder, but cannot stop work that does not
// look at the hold: let it obey the context, or give it the token. The clock
// stands still while the machine is suspended.
type Bound struct {
	most  time.Duration // how long a hold may last; 0: for ever
	asked time.Duration // how long it goes on after the request
	stop  time.Duration // how long a function goes on after its context has ended; 0: for ever
}

// MaxHold bounds a hold as a whole. After d the holder is asked to give it up,
// as by [inspect.Revoke]: [coord.Hold.Revoked] is closed, operators see the
// request, and the context of a function that a recipe calls ends. After d and
// grace the hold ends. No cost but a timer until d is over.
func (b *Bound) MaxHold(d, grace time.Duration) error {
	if d <= 0 || grace < 0 {
		return wire.Invalid(
			"a hold of at most %v, and %v more after a request; the first must be above 0, the second not negative", d, grace)
	}
	b.most, b.asked = d, grace
	return nil
}

// StopGrace bounds how long a function called by a recipe, or by [Do] with one
// of its methods, may keep its hold after the function's context has ended:
// because the caller's has, a health check failed, or the hold reached
// [Bound.MaxHold]. No cost but a timer then.
func (b *Bound) StopGrace(d time.Duration) error {
	if d <= 0 {
		return wire.Invalid("%v for a function to end; it must be above 0", d)
	}
	b.stop = d
	return nil
}

// Granted bounds a hold that a call with ctx has just been granted: it ends
// when MaxHold is over, and a [Do] that made the call gives its function the
// context of [Bound.Context].
func (b Bound) Granted(ctx context.Context, c *coord.Client, h *coord.Hold) {
	if all, within := ctx.Value(boundsKey{}).(*bounds); within && b != (Bound{}) {
		all.add(b, h)
	}
	if b.most == 0 {
		return
	}
	held := h.Context(context.Background())
	due := time.AfterFunc(b.most, func() {
		asking, cancel := context.WithTimeout(held, b.asked)
		defer cancel()
		_ = inspect.Revoke(asking, c, h.Node()) // a holder that is not asked loses the hold all the same
		<-asking.Done()
		if held.Err() == nil {
			recipe.Invalidate(h, b.heldTooLong())
		}
	})
	context.AfterFunc(held, func() { due.Stop() })
}

func (b Bound) heldTooLong() error { return fmt.Errorf("%w: more than %v", ErrHeldTooLong, b.most) }

// Context returns a context for a function that runs under the hold, and a
// function to call when that has returned. The context ends when the hold or
// ctx does, or when MaxHold is over. The hold ends when StopGrace is over, if
// the function has not returned.
func (b Bound) Context(ctx context.Context, h *coord.Hold) (inside context.Context, returned func()) {
	cancel := func() {}
	if b.most > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, b.most, b.heldTooLong())
	}
	inside = h.Context(ctx)
	if b.stop == 0 {
		return inside, cancel
	}
	over := make(chan struct{})
	unwatch := context.AfterFunc(inside, func() {
		timer := time.NewTimer(b.stop)
		defer timer.Stop()
		select {
		case <-timer.C:
			recipe.Invalidate(h,
				fmt.Errorf("%w: %v after its function's context had ended (%w)", ErrHeldTooLong, b.stop, context.Cause(inside)))
		case <-over:
		case <-h.Done():
		}
	})
	return inside, sync.OnceFunc(func() {
		unwatch()
		close(over)
		cancel()
	})
}

// bounds are the bounds of the holds that a call of [Do] was granted.
type bounds struct {
	mu  sync.Mutex
	all []func(ctx context.Context) (inside context.Context, returned func())
}

type boundsKey struct{}

func (b *bounds) add(is Bound, h *coord.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, func(ctx context.Context) (context.Context, func()) {
		if h.Err() != nil { // of an attempt that was followed by another
			return ctx, func() {}
		}
		return is.Context(ctx, h)
	})
}

// context is [Bound.Context] of all the holds.
func (b *bounds) context(ctx context.Context) (inside context.Context, returned func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ends := make([]func(), len(b.all))
	for i, one := range b.all {
		ctx, ends[i] = one(ctx)
	}
	return ctx, func() {
		for _, end := range ends {
			end()
		}
	}
}
