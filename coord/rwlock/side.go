package rwlock

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
)

// Side is one side of a [Lock], with the methods of any lock: it can take
// part in a multi-lock. It is safe for concurrent use.
type Side struct {
	client *coord.Client
	spec   coord.Spec
	rule   coord.Rule
}

// Client returns the client the lock was made with.
func (s *Side) Client() *coord.Client { return s.client }

// Path returns the lock's directory.
func (s *Side) Path() string { return s.spec.Line.Dir }

// Acquire waits for the side's hold until ctx ends. ctx bounds the waiting, not
// the hold. When it returns an error, nothing is left behind. See
// [Lock.AcquireRead] and [Lock.AcquireWrite].
func (s *Side) Acquire(ctx context.Context) (*coord.Hold, error) {
	return s.client.Acquire(ctx, s.spec, s.rule)
}

// TryAcquire takes the side's hold if it is free and fails with [coord.ErrBusy]
// if it is not.
func (s *Side) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return s.client.TryAcquire(ctx, s.spec, s.rule)
}

// Do acquires, runs f, and releases; see [coord.Do] for what it returns.
func (s *Side) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return coord.Do(ctx, s.Acquire, f)
}
