package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// ErrHeldTooLong: the hold lasted longer than [MaxHold] allows.
// [coord.Hold.Err] wraps it with [coord.ErrLost].
var ErrHeldTooLong = errors.New("held for too long")

// MaxHold bounds how long the lock is held through this [Mutex]. After d the
// holder is asked to give it up, as by [coord/inspect.Revoke]: its
// [coord.Hold.Revoked] is closed, and operators see the request. After d and
// grace the hold ends as lost ([ErrHeldTooLong]), and so do its contexts; then
// the node is deleted, and another may hold.
//
// The end does not depend on the servers or on the holder, but cannot stop what
// does not look at the hold: let it heed the context, or give it the token. The
// times are those of a clock that stands still while the machine is suspended.
// A handle made inside of the hold ([Reentrant], [coord.Hold.Nest]) is bound by
// those around it while they last, one made by Acquire also by a time of its
// own; a turn of a [LocalQueue] has the whole time.
//
// A request costs what Revoke does; until then there is no cost but a timer.
func MaxHold(d, grace time.Duration) Option {
	return func(m *Mutex) error {
		if d <= 0 || grace < 0 {
			return fmt.Errorf("%w: a hold of at most %v, and %v more after a request; the first must be above 0, the second not below", coord.ErrInvalid, d, grace)
		}
		m.bound = bound{d, grace}
		return nil
	}
}

// bound is how long a hold lasts before it is asked for, and how much longer.
type bound struct{ most, grace time.Duration }

// bounded has a hold end in time.
func (m *Mutex) bounded(h *coord.Hold, err error) (*coord.Hold, error) {
	if err != nil || m.bound.most == 0 {
		return h, err
	}
	held := h.Context(context.Background())
	due := time.AfterFunc(m.bound.most, func() { m.expire(held, h) })
	context.AfterFunc(held, func() { due.Stop() })
	return h, nil
}

// expire asks for the hold, and ends it when the time for that is over. held
// ends with the hold.
func (m *Mutex) expire(held context.Context, h *coord.Hold) {
	asking, cancel := context.WithTimeout(held, m.bound.grace)
	defer cancel()
	_ = inspect.Revoke(asking, m.client, h.Node()) // who is not asked loses the hold all the same
	<-asking.Done()
	if held.Err() == nil {
		h.Forfeit(fmt.Errorf("%w: more than %v", ErrHeldTooLong, m.bound.most))
	}
}
