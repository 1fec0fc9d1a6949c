package coord

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// ReleaseTxn releases the hold and carries out the operations, both or neither:
// one request, one round trip. When it returns nil, both were done while the
// hold's node existed, and the hold has ended (as released, unless it was lost
// while the reply was under way). When the ensemble refused it, the error wraps
// a [*TxnError] and the hold goes on; when the hold was lost, the error matches
// [ErrLost] and nothing was carried out. A lost reply is found out by asking
// again. When ctx ends before that, or the repeat is refused, which does not
// say that the first attempt will not be carried out yet, the error matches
// [ErrUnconfirmed], and the node, if it is still there, is deleted in the
// background. It fails with [ErrInvalid] while other handles of the hold
// ([Spec.Reentrant]) are not released.
//
// If the claim is broken while a lost reply is being found out, the own node is
// missing in either case. Then an operation that deletes a node, or sets one of
// a known version, shows whether the transaction was carried out. Without such
// an operation, the missing node counts as its work.
func (h *Hold) ReleaseTxn(ctx context.Context, ops ...Op) error {
	if err := h.beginReleasing(); err != nil {
		return opError("release", h.Node(), err)
	}
	err := h.releaseBy(ctx, append([]Op{DeleteOp(h.Node(), h.claim.node.Version())}, ops...))
	return h.claim.client.Failure("release", h.Node(), err)
}

func (h *Hold) beginReleasing() error {
	cl := h.claim
	if err := h.Err(); err != nil {
		return err
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err := h.mayEnd(); err != nil {
		return err
	}
	cl.deleting = make(chan struct{})
	return nil
}

// mayEnd returns why a request for h cannot end the claim, or nil; cl.mu is
// held.
func (h *Hold) mayEnd() error {
	cl := h.claim
	switch {
	case h.err != nil:
		return h.err
	case len(cl.holds) > 1:
		return invalid("%d other handles of the hold are not released", len(cl.holds)-1)
	case cl.deleting != nil:
		return invalid("a transaction releases the hold already")
	}
	return nil
}

// releaseBy sends the transaction, whose first operation deletes the own node,
// until its outcome is known.
func (h *Hold) releaseBy(ctx context.Context, ops []Op) error {
	cl := h.claim
	err := znode.Send(ctx, cl.sess, func() error {
		_, err := cl.client.txn(ctx, cl.sess, ops)
		return err
	}, func(err error, lost bool) error {
		return h.judge(ctx, ops, err, lost)
	})
	if err == nil {
		cl.releasedBy()
		return nil
	}
	cl.stopReleasing()
	switch {
	case errors.Is(err, ErrUnconfirmed):
		h.Abandon() // and the rest is left to the background
	case errors.Is(err, ErrNodeDeleted):
		cl.vanish(ErrNodeDeleted)
	}
	return err
}

// judge says what becomes of a transaction that releases h and has failed; see
// [znode.Send].
func (h *Hold) judge(ctx context.Context, ops []Op, err error, lost bool) error {
	cl := h.claim
	// An earlier attempt whose reply was lost may be carried out late.
	final := func(err error) error {
		if lost {
			return znode.Unconfirmed(err)
		}
		return err
	}
	var refused *TxnError
	switch errors.As(err, &refused); {
	case refused == nil && znode.IsLost(err):
		return znode.ErrAgain
	case refused == nil, refused.Index > 0, !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrBadVersion):
		return final(callersOwn(err, 1))
	}
	if errors.Is(err, ErrBadVersion) {
		switch written, err := cl.node.Rewritten(ctx); {
		case err != nil && lost:
			return znode.Unconfirmed(err)
		case err != nil:
			return h.ownFailure(err)
		case written:
			ops[0] = DeleteOp(h.Node(), cl.node.Version())
			return znode.ErrAgain
		}
	}
	if lost {
		switch undone, err := cl.undone(ctx, ops[1:]); {
		case err != nil:
			return znode.Unconfirmed(err)
		case !undone:
			return nil // the earlier attempt took effect
		}
	}
	return loss{ErrNodeDeleted} // the node is gone, or another's, without the transaction
}

// undone reports whether a transaction that can no longer be carried out
// certainly did not execute: an operation of it would have left another version
// of its node, or none.
func (cl *Claim) undone(ctx context.Context, ops []Op) (bool, error) {
	for _, op := range ops {
		if op.kind != session.OpDelete && (op.kind != session.OpSet || op.version < 0) {
			continue
		}
		node, err := znode.Read(ctx, cl.sess, func() (session.Node, error) {
			return cl.sess.Exists(ctx, cl.client.full(op.path))
		})
		if err != nil {
			return false, err
		}
		if node.Exists && (op.version < 0 || node.Stat.Version == op.version) {
			return true, nil
		}
	}
	return false, nil
}

// stopReleasing unblocks a pending delete and has the own watch look again: its
// events meanwhile were ignored.
func (cl *Claim) stopReleasing() {
	cl.mu.Lock()
	cl.endReleasing()
	cl.mu.Unlock()
	cl.node.Watch()
}

// endReleasing unblocks a pending delete; cl.mu is held.
func (cl *Claim) endReleasing() {
	close(cl.deleting)
	cl.deleting = nil
}

// releasedBy ends the claim, whose node the transaction has deleted.
func (cl *Claim) releasedBy() {
	cl.mu.Lock()
	cl.endReleasing()
	if cl.removal == nil {
		close(cl.beginRemoval().done)
	}
	released, parts := cl.endAll(ErrReleased), cl.parts
	cl.mu.Unlock()
	cl.node.Forget()
	if len(parts) > 0 {
		_ = cl.sess.Go(func() { _ = cl.removeParts() }) // fails when the session took them with it
	}
	cl.client.unregister(cl)
	for _, h := range released {
		h.tellReleased()
	}
}
