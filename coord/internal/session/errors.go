package session

import (
	"context"
	"errors"
	"fmt"
)

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. If the last attempt failed, its error is
// included; if it already reports the context's end, it is returned alone.
func Ended(ctx context.Context, failure ...error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	told := errors.Join(failure...)
	if len(failure) == 1 {
		told = failure[0]
	}
	if told != nil {
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
