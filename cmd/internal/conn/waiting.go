package conn

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// Waiting is for verbs that wait without running a command.
type Waiting struct {
	Timeout *time.Duration `placeholder:"D" positive:"" help:"Wait so long at most, connecting included, then exit with 124."`
}

// Wait runs f with a context that ends with the time-out, of which late is
// told, or by a signal.
func (w *Waiting) Wait(c *Connection, late string, f func(ctx context.Context, client *coord.Client) error) error {
	return c.Lasting(w.Timeout, func(ctx context.Context, client *coord.Client) error {
		err := f(ctx, client)
		var known *term.ExitError
		switch {
		case err == nil || errors.As(err, &known):
			return err
		case errors.Is(err, context.DeadlineExceeded):
			return term.ExitWith(term.ExitTimeout, "%s: %w", late, err)
		}
		return term.BySignal(ctx, Failure(err))
	})
}
