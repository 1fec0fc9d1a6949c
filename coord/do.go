package coord

import (
	"context"
	"errors"

	"github.com/hashicorp/go-multierror"
)

// Held is a [Hold], or something that stands for several.
type Held interface {
	Context(parent context.Context) context.Context
	Err() error
	Release(ctx context.Context) error
}

// Do runs f while held lasts and then releases it, also when f panics. f's
// context ends when the hold does; its cause tells why. Do returns f's error,
// joined with that of the release, and with the loss if the hold was lost
// before f returned: then what f did may not have been alone.
func Do(ctx context.Context, held Held, f func(ctx context.Context) error) error {
	defer func() { _ = held.Release(ctx) }() // comes first only when f panics; the answer is sticky
	result := f(held.Context(ctx))
	var failed *multierror.Error
	if result != nil {
		failed = multierror.Append(failed, result)
	}
	if lost := held.Err(); lost != nil && !errors.Is(lost, ErrReleased) && !errors.Is(result, lost) {
		failed = multierror.Append(failed, lost)
	}
	if err := held.Release(ctx); err != nil {
		failed = multierror.Append(failed, err)
	}
	return failed.ErrorOrNil()
}
