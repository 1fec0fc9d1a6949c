package coord

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// held is a [Hold], or something that stands for several.
type held interface {
	Context(parent context.Context) context.Context
	Err() error
	Release(ctx context.Context) error
}

// Do acquires, runs f while what was acquired lasts, and releases it, also when
// f panics. f's context ends when the hold does; its cause says why. Do returns
// f's error as it is, or joined (by go-multierror) with the loss, if the hold
// was lost before f returned and another may have held at the same time; and
// with the error of the release. It ends with ctx, but for f: a release then
// has the time of [Grace].
//
// acquire is a recipe's method: Acquire, TryAcquire, or another of that form.
func Do[H held](ctx context.Context, acquire func(context.Context) (H, error), f func(ctx context.Context, held H) error) (err error) {
	held, err := acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		lost := held.Err()
		if errors.Is(lost, ErrReleased) || errors.Is(err, lost) {
			lost = nil
		}
		releasing, cancel := Grace(ctx)
		defer cancel()
		err = Joined(err, lost, held.Release(releasing))
	}()
	return f(held.Context(ctx), held)
}

// Check returns an error that matches [ErrInvalid] if the arguments of a
// recipe's constructor are invalid. The root is no place for a recipe.
func Check(c *Client, path string) error {
	if c == nil {
		return opError("new", path, invalid("the client is nil"))
	}
	err := checkPath(path)
	if err == nil && path == "/" {
		err = invalid("the root cannot be used; name a path below it")
	}
	return opError("check path", "", err)
}

// Configure has a recipe's options set what they say about r.
func Configure[R any, O ~func(R) error](r R, path string, opts []O) error {
	for _, set := range opts {
		if set == nil {
			return opError("new", path, invalid("an option is nil"))
		}
		if err := set(r); err != nil {
			return opError("new", path, err)
		}
	}
	return nil
}

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. If the last attempt failed, its error is
// included; if it already reports the context's end, it is returned alone. All
// match errors.Is.
func Ended(ctx context.Context, failure ...error) error { return session.Ended(ctx, failure...) }

// Grace returns ctx, or when that has ended already, a context that lasts for
// another 50 ms: for a release whose caller has no more time. Servers in good
// health answer within that; a release that is not confirmed by then goes on in
// the background. A release with either context ends with it.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) {
	decided := context.WithValue(ctx, boundKey{}, true)
	if ctx.Err() == nil {
		return decided, func() {}
	}
	return context.WithTimeoutCause(context.WithoutCancel(decided), 50*time.Millisecond, Ended(ctx))
}

type boundKey struct{}

// bound returns what bounds a release that is called with ctx: ctx, or nothing
// if that has ended already. It is decided once, as the call begins: a context
// that ends later ends during the call.
func bound(ctx context.Context) context.Context {
	if ctx.Value(boundKey{}) != nil {
		return ctx
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithValue(ctx, boundKey{}, true)
}

// Joined returns the only error that is not nil as it is, and several as one, a
// go-multierror in one line.
func Joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	all := multierror.Append(nil, errs...)
	all.ErrorFormat = func(errs []error) string {
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		return strings.Join(texts, "; ")
	}
	return all
}
