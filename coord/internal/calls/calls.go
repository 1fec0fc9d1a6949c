// Package calls keeps what a context says about the call that it is given to,
// joins the errors of calls, and counts those under way.
package calls

import (
	"context"
	"errors"
	"fmt"
	"time"
)

type (
	patientKey struct{}
	boundKey   struct{}
)

// Patient returns a context for what a call acquires after it has waited.
func Patient(ctx context.Context) context.Context {
	if IsPatient(ctx) {
		return ctx
	}
	return context.WithValue(ctx, patientKey{}, true)
}

// IsPatient reports whether ctx is, or descends from, one that [Patient] made.
func IsPatient(ctx context.Context) bool { return ctx.Value(patientKey{}) != nil }

// Grace returns ctx, or when that has ended already, a context that lasts for
// another 50 ms.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) {
	decided := context.WithValue(ctx, boundKey{}, true)
	if ctx.Err() == nil {
		return decided, func() {}
	}
	return context.WithTimeoutCause(context.WithoutCancel(decided), 50*time.Millisecond, Ended(ctx))
}

// Bound returns the context that bounds a release called with ctx: ctx itself,
// or a context without an end if ctx has ended already. That is decided once: a
// ctx that ends later, during the call, bounds it.
func Bound(ctx context.Context) context.Context {
	if ctx.Value(boundKey{}) != nil {
		return ctx
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithValue(ctx, boundKey{}, true)
}

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. If the last attempt failed, its error is
// included; if it already reports the context's end, it is returned alone.
func Ended(ctx context.Context, failure ...error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if told := Joined(failure...); told != nil {
		if errors.Is(told, err) {
			return told
		}
		return fmt.Errorf("%w (%w)", Ended(ctx), told)
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
