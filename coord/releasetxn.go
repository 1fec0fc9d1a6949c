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
	return releaseTxn(ctx, []*Hold{h}, ops)
}

// ReleaseTxn releases every member and carries out the operations, all or
// nothing, as [Hold.ReleaseTxn] does: one request. The members must be of one
// session. When one was lost, the error matches [ErrLost], nothing was carried
// out, and the others go on.
func (g *Group) ReleaseTxn(ctx context.Context, ops ...Op) error {
	for _, h := range g.holds {
		if h.claim.sess != g.holds[0].claim.sess {
			return opError("release", h.Node(), invalid("the holds are of two sessions"))
		}
	}
	return releaseTxn(ctx, g.holds, ops)
}

func releaseTxn(ctx context.Context, holds []*Hold, ops []Op) error {
	all := make([]Op, 0, len(holds)+len(ops))
	for i, h := range holds {
		if err := h.beginReleasing(); err != nil {
			stopReleasing(holds[:i])
			return opError("release", h.Node(), err)
		}
		all = append(all, DeleteOp(h.Node(), h.claim.node.Version()))
	}
	err := releaseBy(ctx, holds, append(all, ops...))
	return holds[0].claim.client.Failure("release", holds[0].Node(), err)
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

// releaseBy sends the transaction, whose first operations delete the own nodes,
// until its outcome is known.
func releaseBy(ctx context.Context, holds []*Hold, ops []Op) error {
	cl, gone := holds[0].claim, (*Hold)(nil)
	err := znode.Send(ctx, cl.sess, func() error {
		_, err := cl.client.txn(ctx, cl.sess, ops)
		return err
	}, func(err error, lost bool) error {
		at, verdict := judge(ctx, holds, ops, err, lost)
		if errors.Is(verdict, ErrNodeDeleted) {
			gone = holds[at]
		}
		return verdict
	})
	if err == nil {
		for _, h := range holds {
			h.claim.releasedBy()
		}
		return nil
	}
	stopReleasing(holds)
	switch {
	case errors.Is(err, ErrUnconfirmed):
		for _, h := range holds {
			h.Abandon() // and the rest is left to the background
		}
	case gone != nil:
		gone.claim.lose(ErrNodeDeleted, true)
	}
	return err
}

// judge says what becomes of a transaction that releases the holds and has
// failed, at which of them; see [znode.Send].
func judge(ctx context.Context, holds []*Hold, ops []Op, err error, lost bool) (at int, verdict error) {
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
		return 0, znode.ErrAgain
	case refused == nil, refused.Index >= len(holds), !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrBadVersion):
		return 0, final(callersOwn(err, len(holds)))
	}
	at = refused.Index
	h, cl := holds[at], holds[at].claim
	if errors.Is(err, ErrBadVersion) {
		switch written, err := cl.node.Rewritten(ctx); {
		case err != nil && lost:
			return at, znode.Unconfirmed(err)
		case err != nil:
			return at, h.ownFailure(err)
		case written:
			ops[at] = DeleteOp(h.Node(), cl.node.Version())
			return at, znode.ErrAgain
		}
	}
	if lost {
		switch undone, err := cl.undone(ctx, ops[len(holds):]); {
		case err != nil:
			return at, znode.Unconfirmed(err)
		case !undone:
			return at, nil // the earlier attempt took effect
		}
	}
	return at, loss{ErrNodeDeleted} // the node is gone, or another's, without the transaction
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
func stopReleasing(holds []*Hold) {
	for _, h := range holds {
		h.claim.mu.Lock()
		h.claim.endReleasing()
		h.claim.mu.Unlock()
		h.claim.node.Watch()
	}
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
		_ = cl.sess.Go(func() { _ = removeParts(cl.partsLeft()) }) // fails when the session took them with it
	}
	cl.client.unregister(cl)
	for _, h := range released {
		h.tellReleased()
	}
}
