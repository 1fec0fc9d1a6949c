package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
)

// removal is the deletion of a claim's node, once it has begun.
type removal struct {
	claim *claim
	done  chan struct{}
	err   error // set before done is closed; before, the failure of atOnce
}

// leave begins to delete the node, once, by begin.
func (cl *claim) leave(begin func(func()) error) *removal {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.removal != nil {
		return cl.removal
	}
	r, idle := cl.beginRemoval(), cl.under.Idle()
	remove := func() {
		if idle != nil {
			<-idle // they would take a deletion by us for theirs, or the next owner's node of a name for ours
		}
		r.end(r.remove())
	}
	parts, _ := cl.attached()
	if cl.gone != nil && len(parts) == 0 || begin(remove) != nil {
		r.over(nil)
	}
	return r
}

// atOnce begins a removal without a goroutine, if the node can be deleted by
// one request that need not wait for anything. cl.mu is held.
func (cl *claim) atOnce(remove func()) error {
	parts, along := cl.attached()
	if cl.gone != nil || cl.unsure || len(parts)+len(along) > 0 || cl.under.Idle() != nil || len(cl.proof()) > 0 {
		return cl.sess.Go(remove)
	}
	r := cl.removal
	cl.sess.BeginDelete(cl.node.Path(), cl.node.Version(), func(err error) {
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
	cl.waker.Wake()
	return cl.removal
}

// remove deletes the node and its parts, until they or the session are gone. A
// node that a transaction may have deleted is looked for first.
func (r *removal) remove() error {
	cl := r.claim
	cl.mu.Lock()
	gone, tried := cl.gone, r.err
	_, along := cl.attached()
	if cl.unsure {
		tried = cmp.Or(tried, ErrUnconfirmed)
	}
	cl.mu.Unlock()
	if gone != nil {
		return nil
	}
	err := cl.node.Delete(func() error {
		if err := tried; err != nil && !errors.Is(err, ErrBadVersion) {
			tried = nil
			return err
		}
		if parts := cl.partsLeft(); len(parts)+len(along) > 0 {
			return r.removeWith(parts, along)
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
	r.claim.client.claims.remove(r.claim)
	close(r.done)
}

// wait waits for the answer, at most for limit and until ctx ends. The release
// itself ends a ctx that is a context of the hold: then wait goes on until the
// parent of ctx ends, or the deadline of ctx is over.
func (r *removal) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrReleased) {
			outer := context.WithoutCancel(ctx)
			if held := innermost(ctx); held != nil {
				outer = held.parent
			}
			if deadline, ok := ctx.Deadline(); ok {
				bound, cancel := context.WithDeadline(outer, deadline)
				defer cancel()
				outer = bound
			}
			return r.wait(outer, limit)
		}
		return fmt.Errorf("%w: %w", ErrUnconfirmed, calls.Ended(ctx))
	case <-timer.C:
		if trouble := r.claim.node.LastError(); trouble != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, trouble)
		}
		return fmt.Errorf("%w: no answer for %v", ErrUnconfirmed, limit)
	}
}

// removeWith deletes the node and its parts, and carries out the owner's
// operations, in one transaction: no reader finds the one without the other. If
// that is refused, the nodes are deleted one by one.
func (r *removal) removeWith(parts []*claim, along []Op) error {
	cl := r.claim
	ctx, ops := context.Background(), append(cl.proof(), DeleteOp(cl.path(), cl.node.Version()))
	for _, part := range parts {
		ops = append(ops, DeleteOp(part.path(), -1))
	}
	_, err := cl.client.txn(ctx, cl.sess, append(ops, along...))
	var refused *TxnError
	if errors.As(err, &refused) && !transient(err) || errors.Is(err, ErrTooLarge) {
		return cl.node.DeleteOnce()
	}
	if err == nil {
		for _, part := range parts {
			part.lose(ErrNodeDeleted, true)
		}
	}
	return err
}

// removeParts deletes parts one by one.
func removeParts(parts []*claim) (err error) {
	for _, part := range parts {
		r := part.leave(part.atOnce)
		<-r.done
		err = cmp.Or(err, r.err)
	}
	return err
}
