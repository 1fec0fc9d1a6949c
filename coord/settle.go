package coord

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// ReleaseTxn releases the hold and carries out the operations, both or neither:
// one request, one round trip. When it returns nil, both were done while the
// hold's node existed, and the hold has ended (as released, unless it was lost
// while the reply was under way). When the ensemble refused it, the error wraps
// a [*TxnError] and the hold goes on; when the hold was lost, the error matches
// [ErrLost] and nothing was carried out. A lost reply is found out by asking
// again. When ctx ends before that, or the repeat is refused, which does not say
// that the first attempt will not be carried out yet, the error matches
// [ErrUnconfirmed], and the node, if it is still there, is deleted in the
// background. It fails with [ErrInvalid] while other handles of the hold
// ([Spec.Reentrant]) are not released.
//
// If somebody breaks the claim while a lost reply is being found out, the own
// node is missing in either case. Then an operation that deletes a node, or sets
// one of a known version, tells whether the transaction was carried out. Without
// such an operation, the missing node is taken for its work.
func (h *Hold) ReleaseTxn(ctx context.Context, ops ...Op) error {
	if err := h.beginSettling(); err != nil {
		return opError("release", h.Node(), err)
	}
	err := h.settle(ctx, append([]Op{DeleteOp(h.Node(), h.claim.version())}, ops...))
	return h.claim.client.Failure("release", h.Node(), err)
}

func (h *Hold) beginSettling() error {
	cl := h.claim
	if err := h.Err(); err != nil {
		return err
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err := h.mayEnd(); err != nil {
		return err
	}
	cl.settling = make(chan struct{})
	return nil
}

// mayEnd tells why a request for h cannot end the claim, or nil; cl.mu is held.
func (h *Hold) mayEnd() error {
	cl := h.claim
	switch {
	case h.err != nil:
		return h.err
	case len(cl.holds) > 1:
		return invalid("%d other handles of the hold are not released", len(cl.holds)-1)
	case cl.settling != nil:
		return invalid("a transaction releases the hold already")
	}
	return nil
}

// settle sends the transaction, whose first operation deletes the own node, until
// its outcome is known.
func (h *Hold) settle(ctx context.Context, ops []Op) error {
	cl, unknown := h.claim, false // whether an earlier attempt took effect
	for {
		_, err := cl.client.txn(ctx, cl.sess, ops)
		var refused *TxnError
		atOwn := errors.As(err, &refused) && refused.Index == 0
		if atOwn && errors.Is(err, ErrBadVersion) {
			written, err := cl.wasWritten(ctx)
			switch {
			case err != nil && unknown:
				return h.unsettled(err)
			case err != nil:
				cl.stopSettling()
				return h.ownFailure(err)
			case written:
				ops[0] = DeleteOp(h.Node(), cl.version())
				continue
			}
		}
		gone := atOwn && (errors.Is(err, ErrNoNode) || errors.Is(err, ErrBadVersion))
		switch {
		case err == nil:
			cl.settled()
			return nil
		case gone && unknown:
			undone, err := cl.undone(ctx, ops[1:])
			switch {
			case err != nil && transient(err) && ctx.Err() == nil && cl.sess.Err() == nil:
				if errors.Is(err, ErrThrottled) {
					cl.client.pause(ctx)
				}
				continue
			case err != nil:
				return h.unsettled(err)
			case undone:
				return h.settledByOthers()
			}
			cl.settled() // the earlier one took effect
			return nil
		case gone:
			return h.settledByOthers()
		case errors.Is(err, ErrDisconnected) && ctx.Err() == nil && cl.sess.Err() == nil:
			unknown = true
		case errors.Is(err, ErrThrottled) && ctx.Err() == nil:
			cl.client.pause(ctx)
		case errors.Is(err, ErrUnconfirmed):
			return h.unsettled(err)
		case unknown:
			return h.unsettled(callersOwn(err, 1)) // an earlier attempt may be carried out late (see doubt)
		default:
			cl.stopSettling()
			return callersOwn(err, 1)
		}
	}
}

// undone tells whether a transaction that can no longer be carried out has
// certainly not been: an operation of it would have left another version of its
// node, or none.
func (cl *Claim) undone(ctx context.Context, ops []Op) (bool, error) {
	for _, op := range ops {
		if op.kind != session.OpDelete && (op.kind != session.OpSet || op.version < 0) {
			continue
		}
		node, err := cl.sess.Exists(ctx, cl.client.full(op.path))
		if err != nil {
			return false, err
		}
		if node.Exists && (op.version < 0 || node.Stat.Version == op.version) {
			return true, nil
		}
	}
	return false, nil
}

// unsettled gives up finding out, and leaves the rest to the background.
func (h *Hold) unsettled(err error) error {
	h.claim.stopSettling()
	h.Abandon()
	if errors.Is(err, ErrUnconfirmed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

// settledByOthers: the node is gone, or another's, without the transaction.
func (h *Hold) settledByOthers() error {
	h.claim.stopSettling()
	h.claim.vanish(ErrNodeDeleted)
	return fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted)
}

// stopSettling has the own watch look again: what it told meanwhile was not
// heeded.
func (cl *Claim) stopSettling() {
	cl.mu.Lock()
	cl.endSettling()
	cl.mu.Unlock()
	cl.watchOwnNow()
}

// endSettling lets a deletion of the node begin that waits; cl.mu is held.
func (cl *Claim) endSettling() {
	close(cl.settling)
	cl.settling = nil
}

// settled ends the claim, whose node is deleted.
func (cl *Claim) settled() {
	cl.mu.Lock()
	cl.endSettling()
	if cl.removal == nil {
		close(cl.beginRemoval().done)
	}
	released, parts := cl.endAll(ErrReleased), cl.parts
	cl.mu.Unlock()
	if len(parts) > 0 {
		_ = cl.sess.Go(func() { _ = cl.removeParts() }) // fails when the session took them with it
	}
	cl.client.unregister(cl)
	for _, h := range released {
		h.tellReleased()
	}
}
