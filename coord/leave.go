package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Release gives the hold up and deletes its node. It returns nil only when the
// node was deleted, was gone already, or its session is over for this client; a
// hold that had been lost is released with nil, too, and [Hold.Err] goes on
// reporting the loss. A session can be over for its client before it is for the
// servers: servers that the client could not reach keep the node, and others
// wait for it, until the client can close the session there, or for up to the
// session time-out after they can serve again. Otherwise it returns
// [ErrUnconfirmed], and the deletion is repeated in the background until the
// node or the session is gone. It may be called again and from several
// goroutines: all get the same answer.
//
// Release waits at most for the session time-out, and no longer than ctx,
// unless ctx has ended before the call: a deferred Release with a dead context
// still deletes and waits. One request, one round trip.
func (h *Hold) Release(ctx context.Context) error {
	ctx = bound(ctx)
	if r := h.giveUp(); r != nil {
		return opError("release", h.Node(), r.wait(ctx, h.claim.sess.Timeout()))
	}
	return nil
}

// Abandon is [Hold.Release] without waiting for the answer, for callers that
// must return immediately: the node is deleted in the background. Release
// returns the outcome.
func (h *Hold) Abandon() { h.giveUp() }

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

// tellReleased tells the contexts of a hold that was released, and the
// observer.
func (h *Hold) tellReleased() {
	h.tellEnded()
	h.claim.emit(ClaimEnded, h.granted, ErrReleased)
}

// removal is the deletion of a claim's node, once it has begun.
type removal struct {
	claim *claim
	done  chan struct{}
	err   error // set before done is closed; before, the failure of atOnce
}

// leaving is closed when the node is to be deleted.
func (cl *claim) leaving() <-chan struct{} {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.left.Done(cl.removal != nil)
}

// leave begins to delete the node, once, by begin.
func (cl *claim) leave(begin func(func()) error) *removal {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.removal != nil {
		return cl.removal
	}
	r, deleting, gone := cl.beginRemoval(), cl.deleting, cl.gone != nil
	remove := func() {
		if deleting != nil {
			<-deleting // it would take a deletion by us for its own
		}
		var err error
		if !gone {
			err = r.remove()
		}
		r.end(err)
	}
	if gone && len(cl.parts) == 0 || begin(remove) != nil {
		r.over(nil)
	}
	return r
}

// atOnce begins a removal without a goroutine, if the node can be deleted by
// one request that need not wait for anything. cl.mu is held.
func (cl *claim) atOnce(remove func()) error {
	if cl.gone != nil || len(cl.parts) > 0 || cl.deleting != nil || cl.node.Spec.Shared {
		return cl.sess.Go(remove)
	}
	r := cl.removal
	cl.sess.BeginDelete(cl.node.Path(), func(err error) {
		r.err = err
		if err == nil || cl.sess.Go(remove) != nil {
			r.over(nil)
		}
	})
	return nil
}

// beginRemoval notes that the node is about to be deleted; cl.mu is held, and
// no other goroutine deletes it.
func (cl *claim) beginRemoval() *removal {
	cl.removal = &removal{claim: cl, done: make(chan struct{})}
	cl.node.WatchNoMore()
	cl.left.Close()
	return cl.removal
}

// remove deletes the node, and its parts along with it, for as long as that
// takes: until it or the session is gone.
func (r *removal) remove() error {
	cl := r.claim
	err := cl.node.Delete(func() error {
		if parts := cl.partsLeft(); len(parts) > 0 {
			return r.removeWith(parts)
		}
		if err := r.err; err != nil {
			r.err = nil
			return err
		}
		return cl.node.DeleteOnce()
	})
	if err != nil {
		return fmt.Errorf("%w; %s stays until session %s ends", err, cl.path(), sessionName(cl.sess.ID()))
	}
	return nil
}

// end deletes the parts that are left of a claim whose node is deleted, or
// cannot be, for err, and ends the claim.
func (r *removal) end(err error) { r.over(cmp.Or(err, removeParts(r.claim.partsLeft()))) }

// over ends the claim.
func (r *removal) over(err error) {
	r.err = err
	if err == nil {
		r.claim.node.Forget()
	}
	r.claim.client.unregister(r.claim)
	close(r.done)
}

// wait waits for the answer, at most for limit and until ctx ends, unless that
// is a context of the hold itself, which ends by the release.
func (r *removal) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrReleased) {
			return r.wait(context.WithoutCancel(ctx), limit)
		}
		return fmt.Errorf("%w: %w", ErrUnconfirmed, Ended(ctx))
	case <-timer.C:
		if trouble := r.claim.node.Trouble(); trouble != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, trouble)
		}
		return fmt.Errorf("%w: no answer for %v", ErrUnconfirmed, limit)
	}
}
