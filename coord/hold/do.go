// Package hold works with the holds of any recipe: it runs a function while a
// hold lasts, bounds how long a hold may last, makes several holds count as
// one, and ends work when a health check fails.
package hold

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// held is a [coord.Hold], a [Set], or the like.
type held interface {
	Context(parent context.Context) context.Context
	Err() error
	Release(ctx context.Context) error
}

// Do acquires, runs f while the hold lasts, and releases the hold, also when f
// panics. f's context ends when the hold does; its cause says why. Do returns
// f's error as it is, or joined (by go-multierror) with the loss, if the hold
// was lost before f returned and another may have held at the same time; and
// with the error of the release. Do ends with ctx, except that it waits for f,
// whose hold a recipe's StopGrace then bounds ([Bound]); the release then has
// the time of [recipe.Grace].
//
// acquire is a recipe's method: Acquire, TryAcquire, or another of that form.
func Do[H held](
	ctx context.Context, acquire func(context.Context) (H, error), f func(ctx context.Context, held H) error,
) (err error) {
	if acquire == nil || f == nil {
		return &coord.OpError{Op: "do", Err: wire.Invalid("the function is nil")}
	}
	var within bounds
	held, err := acquire(context.WithValue(ctx, boundsKey{}, &within))
	if err != nil {
		return err
	}
	defer func() {
		lost := held.Err()
		if errors.Is(lost, coord.ErrReleased) || errors.Is(err, lost) {
			lost = nil
		}
		releasing, cancel := recipe.Grace(ctx)
		defer cancel()
		err = recipe.Joined(err, lost, held.Release(releasing))
	}()
	inside, returned := within.context(held.Context(ctx))
	defer returned()
	return f(inside, held)
}
