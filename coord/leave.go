package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Release gives the hold up and deletes its node. It returns nil only when the
// node was deleted, was gone already, or its session is over for this client; a
// hold that had been lost is released with nil, too, and [Hold.Err] goes on
// telling of the loss. A session can be over for its client before it is for the
// servers: those that the client could not reach keep the node, and others wait
// for it, until the client can close the session there, or for up to the session
// time-out after they can serve again. Otherwise it returns [ErrUnconfirmed], and the deletion is repeated in
// the background until the node or the session is gone. It may be called again
// and from several goroutines: all get the same answer.
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

// Abandon is [Hold.Release] without waiting for the answer, for those who must
// return at once: the node is deleted in the background. Release tells the
// outcome.
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
	return cl.leave()
}

// Leave gives the claim up and deletes its node, whether its turn has come or
// not. It answers and waits as [Hold.Release] does.
func (cl *Claim) Leave(ctx context.Context) error {
	ctx = bound(ctx)
	return opError("leave", cl.Node(), cl.endAndLeave().wait(ctx, cl.sess.Timeout()))
}

// Abandon is [Claim.Leave] without waiting for the answer; see [Hold.Abandon].
func (cl *Claim) Abandon() { cl.endAndLeave() }

func (cl *Claim) endAndLeave() *removal {
	cl.mu.Lock()
	released := cl.endAll(ErrReleased)
	cl.mu.Unlock()
	for _, h := range released {
		h.tellReleased()
	}
	return cl.leave()
}

// tellReleased tells the contexts of a hold that was released, and the observer.
func (h *Hold) tellReleased() {
	h.cancelContexts()
	cl := h.claim
	cl.client.emit(Event{Kind: ClaimReleased, Session: cl.sess.ID(), Path: cl.Node(), Token: h.Token(), Took: time.Since(h.granted)})
}

// removal is the deletion of an own node, once it has begun.
type removal struct {
	done    chan struct{}
	err     error                 // set before done is closed
	trouble atomic.Pointer[error] // what the servers answered last, while it is tried again
}

// wait waits for the answer, at most for limit and until ctx ends, unless that is
// a context of the hold itself, which ends by the release.
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
		if trouble := r.trouble.Load(); trouble != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, *trouble)
		}
		return fmt.Errorf("%w: no answer for %v", ErrUnconfirmed, limit)
	}
}

// leave begins to delete the node, once.
func (cl *Claim) leave() *removal { return cl.leaveBy(cl.sess.Go) }

// leaveBy is leave with the deletion begun by begin.
func (cl *Claim) leaveBy(begin func(func()) error) *removal {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.removal != nil {
		return cl.removal
	}
	r, settling, gone := cl.beginRemoval(), cl.settling, cl.gone != nil
	remove := func() {
		if settling != nil {
			<-settling // it would take a deletion by us for its own
		}
		var err error
		if !gone {
			err = cl.remove()
		}
		cl.removed(cmp.Or(err, cl.removeParts()))
	}
	if gone && len(cl.parts) == 0 || begin(remove) != nil {
		cl.removed(nil)
	}
	return r
}

// beginRemoval notes that the node is about to be deleted; cl.mu is held, and
// nobody else deletes it.
func (cl *Claim) beginRemoval() *removal {
	cl.removal = &removal{done: make(chan struct{})}
	if cl.lazy != nil {
		cl.lazy.Stop()
	}
	return cl.removal
}

// isRemoved tells whether the node's deletion is over.
func (cl *Claim) isRemoved() bool {
	cl.mu.Lock()
	r := cl.removal
	cl.mu.Unlock()
	if r == nil {
		return false
	}
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// removed ends the claim: its node is deleted, or cannot be.
func (cl *Claim) removed(err error) {
	cl.removal.err = err
	cl.client.unregister(cl)
	close(cl.removal.done)
}

// remove deletes the node, for as long as that takes: until it or the session
// is gone.
func (cl *Claim) remove() error {
	for told := false; ; {
		err := cl.removeOnce()
		switch {
		case err == nil, errors.Is(err, ErrNoNode):
			return nil
		case cl.sess.Err() != nil:
			return nil // the servers delete the session's nodes, if not at once
		case errors.Is(err, ErrNoAuth):
			cl.stranded(err)
			return fmt.Errorf("%w; %s stays until session %s ends", err, cl.Node(), sessionName(cl.sess.ID()))
		case !transient(err):
			cl.removal.trouble.Store(&err)
			if !told {
				cl.stranded(err)
				told = true
			}
		}
		if !errors.Is(err, ErrDisconnected) {
			cl.client.pause(context.Background())
		}
	}
}

// stranded reports an own node that cannot be deleted.
func (cl *Claim) stranded(err error) {
	cl.client.opts.log.Error("own node cannot be deleted; it may stay until the session ends",
		"node", cl.Node(), "session", sessionName(cl.sess.ID()), "err", err)
	cl.client.emit(Event{Kind: NodeStranded, Session: cl.sess.ID(), Path: cl.Node(), Err: err})
}

// removeOnce sends the deletion once. [ErrNoNode] says that the claim has no node,
// also when another's has its name.
func (cl *Claim) removeOnce() error {
	if parts := cl.partsLeft(); len(parts) > 0 {
		return cl.removeWithParts(parts)
	}
	if len(cl.spec.With) == 0 {
		return cl.sess.Delete(context.Background(), cl.node)
	}
	del := DeleteOp(cl.Node(), cl.version())
	_, err := cl.client.txn(context.Background(), cl.sess, append(slices.Clone(cl.spec.Proof), del))
	var refused *TxnError
	if errors.As(err, &refused) && refused.Index < len(cl.spec.Proof) && errors.Is(err, ErrNoNode) {
		_, err = cl.client.txn(context.Background(), cl.sess, []Op{del})
	}
	if !errors.Is(err, ErrBadVersion) {
		return err
	}
	if !errors.As(err, &refused) || refused.Op != opNames[session.OpDelete] {
		return ErrNoNode // the proof tells that it is another's by now
	}
	written, err := cl.wasWritten(context.Background())
	if written {
		return cl.removeOnce()
	}
	return cmp.Or(err, ErrNoNode) // another's by now
}
