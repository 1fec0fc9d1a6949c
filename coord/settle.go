package coord

import (
	"context"
	"errors"
	"fmt"
)

// ReleaseTxn releases the hold and carries out the operations, both or neither:
// one request, one round trip. When it returns nil, both were done while the
// hold's node existed, and the hold has ended (as released, unless it was lost
// while the reply was under way). When the ensemble refused it, the error wraps a [*TxnError] and the
// hold goes on; when the hold was lost, the error matches [ErrLost] and nothing
// was carried out. A lost reply is found out by asking again. When ctx ends
// before that, the error matches [ErrUnconfirmed], and the node, if it is still
// there, is deleted in the background. It fails with [ErrInvalid] while other
// handles of the hold ([Hold.Nest]) are not released. One thing it cannot tell:
// if somebody breaks the claim while a lost reply is being found out, the
// missing node is taken for the transaction's work.
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
	switch {
	case h.err != nil:
		return h.err
	case len(cl.holds) > 1:
		return invalid("%d other handles of the hold are not released", len(cl.holds)-1)
	case cl.settling != nil:
		return invalid("another transaction releases the hold already")
	}
	cl.settling = make(chan struct{})
	return nil
}

func (h *Hold) settle(ctx context.Context, ops []Op) error {
	cl, unknown := h.claim, false
	for {
		_, err := cl.client.txn(ctx, cl.sess, ops)
		var refused *TxnError
		switch {
		case err == nil:
			cl.settled()
			return nil
		case errors.As(err, &refused) && refused.Index == 0 && (errors.Is(err, ErrNoNode) || errors.Is(err, ErrBadVersion)):
			if unknown && errors.Is(err, ErrNoNode) { // the first one took effect
				cl.settled()
				return nil
			}
			if errors.Is(err, ErrBadVersion) {
				asked, unknown := cl.wasAsked(ctx)
				if asked {
					ops[0] = DeleteOp(h.Node(), cl.version())
					continue
				}
				if unknown != nil {
					cl.stopSettling()
					h.Abandon()
					return fmt.Errorf("%w: %w", ErrUnconfirmed, unknown)
				}
			}
			cl.stopSettling()
			cl.vanish(ErrNodeDeleted)
			return fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted)
		case errors.Is(err, ErrDisconnected) && ctx.Err() == nil && cl.sess.Err() == nil:
			unknown = true
		case errors.Is(err, ErrThrottled) && ctx.Err() == nil:
			cl.client.pause(ctx)
		case errors.Is(err, ErrUnconfirmed), unknown && refused == nil:
			cl.stopSettling()
			h.Abandon()
			if !errors.Is(err, ErrUnconfirmed) { // an earlier attempt is
				err = fmt.Errorf("%w: %w", ErrUnconfirmed, err)
			}
			return err
		default:
			cl.stopSettling()
			return callersOwn(err, 1)
		}
	}
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
	released := cl.endAll(ErrReleased)
	cl.mu.Unlock()
	cl.client.unregister(cl)
	for _, h := range released {
		h.tellReleased()
	}
}
