package cli

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// waiting is for verbs that wait without running a command.
type waiting struct {
	Timeout *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most, connecting included, then exit with 124."`
}

// wait runs f with a context that ends with the time-out, of which late is
// told, or by a signal.
func (w *waiting) wait(c *connection, late string, f func(ctx context.Context, client *coord.Client) error) error {
	ctx, calm := interruptible(context.Background())
	defer calm()
	if w.Timeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = within(ctx, *w.Timeout)
		defer cancel()
	}
	client, err := c.open(ctx)
	if err != nil {
		return bySignal(ctx, err)
	}
	defer hangUp(client)
	err = f(ctx, client)
	var known *exitError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return exitWith(exitTimeout, "%s: %w", late, err)
	}
	return bySignal(ctx, failure(err))
}
