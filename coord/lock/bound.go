package lock

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
)

// MaxHold bounds how long the lock is held through this [Mutex]: after d the
// holder is asked to give it up, and after grace more it has lost it. See
// [hold.Bound.MaxHold].
//
// A handle made inside of the hold ([Reentrant], [recipe.Dup]) is bound by
// those around it while they last, one made by Acquire also by a time of its
// own; a turn of a [LocalQueue] has the whole time.
func MaxHold(d, grace time.Duration) Option {
	return func(m *Mutex) error { return m.bound.MaxHold(d, grace) }
}

// StopGrace bounds how long the function of [Mutex.Do], [Multi.Do] or
// [hold.Do] may go on under the lock after its context has ended. See
// [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option {
	return func(m *Mutex) error { return m.bound.StopGrace(d) }
}

// bounded has a hold end in time.
func (m *Mutex) bounded(ctx context.Context, h *coord.Hold, err error) (*coord.Hold, error) {
	if err == nil {
		m.bound.Granted(ctx, m.client, h)
	}
	return h, err
}

// Do runs f while holding the lock; see [hold.Do] for what it returns. To run
// f only if the lock is free, call hold.Do with TryAcquire.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return hold.Do(ctx, m.Acquire, f)
}
