package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipetest"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// object is a recipe's, with what one of its calls leaves to another, such as a
// hold that is to be released.
type object[R, K any] struct {
	it   R
	kept K
	c    *coord.Client
	path string
}

// call is a call of a recipe.
type call[R, K any] = func(ctx context.Context, o *object[R, K]) error

// row is how a recipe's calls are told.
type row[R, K any] struct{}

// run tests a recipe.
func (row[R, K]) run(
	t *testing.T, construct func(*coord.Client, string) (R, error), refused call[R, K],
	calls ...recipetest.Call[*object[R, K]],
) {
	t.Helper()
	recipetest.Run(t, recipetest.Recipe[*object[R, K]]{
		New: func(c *coord.Client, path string) (*object[R, K], error) {
			it, err := construct(c, path)
			return &object[R, K]{it: it, c: c, path: path}, err
		},
		Refused: map[string]func(context.Context, *object[R, K]) error{"what cannot be right": refused},
		Calls:   calls,
	})
}

// does is a call whose result is an error.
func (row[R, K]) does(f func(R, context.Context) error) call[R, K] {
	return func(ctx context.Context, o *object[R, K]) error { return f(o.it, ctx) }
}

// keeps is a call whose result another call ends.
func (row[R, K]) keeps(f func(R, context.Context) (K, error)) call[R, K] {
	return func(ctx context.Context, o *object[R, K]) (err error) {
		o.kept, err = f(o.it, ctx)
		return err
	}
}

// ends is a call of what was kept.
func (row[R, K]) ends(f func(K, context.Context) error) call[R, K] {
	return func(ctx context.Context, o *object[R, K]) error { return f(o.kept, ctx) }
}

// gone fails while something is left at the recipe's path.
func (row[R, K]) gone(ctx context.Context, o *object[R, K]) error {
	_, there, err := o.c.Exists(ctx, o.path)
	return is(false)(there, err)
}

// only returns the error alone of a call.
func only[R, V any](f func(R, context.Context) (V, error)) func(R, context.Context) error {
	return func(it R, ctx context.Context) error { return coordtest.Err(f(it, ctx)) }
}

// first reads one value of a sequence.
func first[R, V any](f func(R, context.Context) iter.Seq2[V, error]) func(R, context.Context) error {
	return func(it R, ctx context.Context) error {
		for _, err := range f(it, ctx) {
			return err
		}
		return errors.New("nothing was observed")
	}
}

// second reads a sequence until it has changed.
func second[R, V any](f func(R, context.Context) iter.Seq2[V, error]) func(R, context.Context) error {
	return func(it R, ctx context.Context) error {
		n := 0
		for _, err := range f(it, ctx) {
			n++
			if err != nil || n == 2 {
				return err
			}
		}
		return errors.New("the observation has ended")
	}
}

// both makes one call after the other.
func both[O any](calls ...func(context.Context, O) error) func(context.Context, O) error {
	return func(ctx context.Context, o O) error {
		for _, call := range calls {
			if err := call(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}
}

// invalid returns [coord.ErrInvalid] if all errors are.
func invalid(errs ...error) error {
	for i, err := range errs {
		if !errors.Is(err, coord.ErrInvalid) {
			return fmt.Errorf("%d of what cannot be right: %v", i, err)
		}
	}
	return coord.ErrInvalid
}

func nothing(context.Context, *coord.Hold) error { return nil }
