package coord

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
)

// Release gives the hold up and deletes its node. It returns nil only when the
// node was deleted, was gone already, or its session is over for this client; a
// hold that had been lost is released with nil, too, and [Hold.Err] goes on
// reporting the loss. A session can be over for its client before it is for the
// servers: servers that the client could not reach keep the node, and others
// wait for it, until the client can close the session there, or for up to the
// session timeout after they can serve again. In all other cases it returns
// [ErrUnconfirmed], and the deletion is repeated in the background until the
// node or the session is gone. It may be called again and from several
// goroutines: all get the same answer.
//
// Release waits at most for the session timeout, and no longer than ctx,
// unless ctx has ended before the call: a deferred Release with a dead context
// still deletes and waits. One request, one round trip; up to three after a
// transaction of the hold whose outcome is not known.
func (h *Hold) Release(ctx context.Context) error {
	ctx = calls.Bound(ctx)
	if r := h.giveUp(); r != nil {
		return opError("release", h.Node(), r.wait(ctx, h.claim.sess.Timeout()))
	}
	return nil
}

// Abandon is [Hold.Release] without waiting for the answer, for callers that
// must return immediately: the node is deleted in the background. Release
// returns the outcome.
func (h *Hold) Abandon() { h.giveUp() }

// Invalidate is recipe.Invalidate.
func (s *holdSteps) Invalidate(cause error) {
	if h := (*Hold)(s); h.Err() == nil {
		h.claim.lose(fmt.Errorf("forfeited: %w", cmp.Or(cause, ErrNodeDeleted)), false)
	}
}

// OnRelease is recipe.OnRelease.
func (s *holdSteps) OnRelease(ops []Op) error {
	h := (*Hold)(s)
	cl, err := h.claim, error(nil)
	if len(ops) > 0 {
		_, err = cl.client.requests(ops)
	}
	if h.in != nil {
		err = errNested
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err = cmp.Or(err, h.err); err == nil {
		cl.rareState().along = slices.Clone(ops)
	}
	return opError("along", cl.path(), err)
}

// giveUp ends h. When it was the last handle, it returns the node's removal.
func (h *Hold) giveUp() *removal {
	cl := h.claim
	cl.mu.Lock()
	first := h.end(ErrReleased)
	last := len(cl.holds) == 0
	cl.mu.Unlock()
	if first {
		h.tellReleased()
	}
	if !last {
		return nil
	}
	return cl.leave(cl.atOnce)
}

// tellReleased ends the contexts of a hold that was released, and informs the
// observer.
func (h *Hold) tellReleased() {
	h.tellEnded()
	h.claim.emit(event.Ended, h.granted, ErrReleased)
}
