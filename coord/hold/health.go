package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrUnwell: a [Health]'s check failed too many times in a row. The error also
// wraps the last failure.
var ErrUnwell = errors.New("health check failed")

// Health is a program's check of itself, and how often it may fail. A session
// shows only that a process is alive; a check shows that it can do its work. It
// is safe for concurrent use. A nil Health is always well.
type Health struct {
	every    time.Duration
	failures int
	check    func(context.Context) error
	running  chan struct{} // has an element while the check runs
}

// NewHealth returns a Health whose check is called once per interval. After the
// given number of failures in a row, the process is not well. The check's
// context ends after the interval: a check that has not returned by then has
// failed, and is not called again before it returns. An invalid argument fails
// with [coord.ErrInvalid].
func NewHealth(every time.Duration, failures int, check func(context.Context) error) (*Health, error) {
	switch {
	case check == nil:
		return nil, wire.Invalid("the check is nil")
	case every <= 0 || failures < 1:
		return nil, wire.Invalid("a check every %v that may fail %d times; both must be above 0", every, failures)
	}
	return &Health{every, failures, check, make(chan struct{}, 1)}, nil
}

// Check calls the check once.
func (h *Health) Check(ctx context.Context) error {
	if h == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, h.every, fmt.Errorf("no answer for %v", h.every))
	defer cancel()
	select {
	case h.running <- struct{}{}:
	case <-limited.Done():
		return recipe.Ended(limited)
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { <-h.running }()
		answer <- h.check(limited)
	}()
	select {
	case err := <-answer:
		return err
	case <-limited.Done():
		return recipe.Ended(limited)
	}
}

// Await calls the check until it succeeds or ctx ends.
func (h *Health) Await(ctx context.Context) error {
	for {
		err := h.Check(ctx)
		if err == nil {
			return nil
		}
		if !h.pause(ctx) {
			return recipe.Ended(ctx, err)
		}
	}
}

// While returns a context that ends when ctx does, or when the check has failed
// too many times in a row; its cause then matches [ErrUnwell]. The first check
// is made after one interval. Call the function that While returns when the
// context is not needed any more. Acquire and work with such a context: a
// process that is not well then leaves the line, or ends its work.
func (h *Health) While(ctx context.Context) (context.Context, context.CancelFunc) {
	well, end := context.WithCancelCause(ctx)
	if h != nil {
		go func() {
			ticker := time.NewTicker(h.every) // a check that hangs takes a whole interval
			defer ticker.Stop()
			for failed := 0; ; {
				select {
				case <-ticker.C:
				case <-well.Done():
				}
				if well.Err() != nil {
					return
				}
				err := h.Check(well)
				failed++
				if err == nil {
					failed = 0
				}
				if failed == h.failures {
					end(fmt.Errorf("%w: %w", ErrUnwell, err))
				}
			}
		}()
	}
	return well, func() { end(nil) }
}

// pause waits for one interval. It reports whether ctx goes on.
func (h *Health) pause(ctx context.Context) bool {
	select {
	case <-time.After(h.every):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
