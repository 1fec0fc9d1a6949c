// Package recipe has what recipes on package coord have in common besides its
// primitives: data that clients agree on, an iterator over what a look reads,
// and checks of arguments.
package recipe

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Check returns an error that matches [coord.ErrInvalid] if the arguments of a
// recipe's constructor are invalid. The root is no place for a recipe, nor is
// /zookeeper or what is below it: the servers keep their own nodes there.
func Check(c *coord.Client, path string) error {
	if c == nil {
		return &coord.OpError{Op: "new", Path: path, Err: wire.Invalid("the client is nil")}
	}
	if err := wire.CheckPlace(path); err != nil {
		return &coord.OpError{Op: "check path", Err: err}
	}
	return nil
}

// Configure applies a recipe's options to r.
func Configure[R any, O ~func(R) error](r R, path string, opts []O) error {
	for _, set := range opts {
		err := wire.Invalid("an option is nil")
		if set != nil {
			err = set(r)
		}
		if err != nil {
			return &coord.OpError{Op: "new", Path: path, Err: err}
		}
	}
	return nil
}

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. If the last attempt failed, its error is
// included; if it already reports the context's end, it is returned alone. All
// match errors.Is.
func Ended(ctx context.Context, failure ...error) error { return calls.Ended(ctx, failure...) }

// Joined returns what failed independently: the only error that is not nil as
// it is, and several as one [*multierror.Error] with a text of one line. A
// failure that reads like an earlier one is left out.
func Joined(errs ...error) error { return calls.Joined(errs...) }

// JoinedWithin is [Joined] for requests that a call made side by side. When ctx
// has ended, no single request is at fault, and the first failure stands for
// all of them.
func JoinedWithin(ctx context.Context, errs ...error) error {
	return calls.JoinedWithin(ctx, errs...)
}

// Patient returns a context for what a call acquires after it has waited:
// [Acquire] then waits for a contender that cannot be honoured
// ([coord.Line]) instead of failing with [coord.ErrForeign], which would come
// late.
func Patient(ctx context.Context) context.Context { return calls.Patient(ctx) }

// IsPatient reports whether ctx is, or descends from, one that [Patient] made.
func IsPatient(ctx context.Context) bool { return calls.IsPatient(ctx) }

// Grace returns ctx, or when that has ended already, a context that lasts for
// another 50 ms: for a release whose caller has no more time. Servers in good
// health answer within that; a release that is not confirmed by then goes on in
// the background. A release with either context ends with it.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) { return calls.Grace(ctx) }
