package coord

import (
	"cmp"
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// transactor is recipe.Transactor.
type transactor struct {
	client *Client
	dir    string
}

// TxnOnce is the Txn of a recipe.Transactor with its witnesses in dir.
func (s *clientSteps) TxnOnce(ctx context.Context, dir string, ops []Op) ([]Result, error) {
	o := transactor{(*Client)(s), dir}
	results, err := o.txn(ctx, nil, ops)
	return results, o.client.failure("transaction", o.dir, err)
}

// txn carries out the operations in session s, or if that is nil, in the
// current one.
func (o transactor) txn(ctx context.Context, s *session.Session, ops []Op) ([]Result, error) {
	requests, err := o.client.requests(ops)
	if err != nil {
		return nil, err
	}
	replies, err := o.client.witnesses.Txn(ctx, o.client.full(o.dir), s, requests)
	return o.client.results(ops, replies, err)
}

// ReleaseBy is the Release of a recipe.Transactor with its witnesses in dir.
func (s *clientSteps) ReleaseBy(ctx context.Context, dir string, holds []*Hold, ops []Op) error {
	o := transactor{(*Client)(s), dir}
	if len(holds) == 0 {
		return opError("release", o.dir, wire.Invalid("no hold to release"))
	}
	return o.client.failure("release", holds[0].Node(), o.release(ctx, holds, ops))
}

func (o transactor) release(ctx context.Context, holds []*Hold, ops []Op) error {
	for i, h := range holds {
		if err := h.beginReleasing(ctx, o.client, holds[0].claim.sess); err != nil {
			stopReleasing(holds[:i], err)
			return opError("release", h.Node(), err)
		}
	}
	gone, err := o.releaseBy(ctx, holds, ops)
	if err == nil {
		for _, h := range holds {
			h.claim.releasedBy()
		}
		return nil
	}
	stopReleasing(holds, err)
	switch {
	case gone != nil:
		gone.claim.lose(ErrNodeDeleted, true)
	case errors.Is(err, ErrUnconfirmed):
		for _, h := range holds {
			h.Abandon() // and the rest is left to the background
		}
	}
	return err
}

// releaseBy carries out the transaction, whose first operations delete the
// holds' nodes. If it fails because a hold's node is gone, it returns that
// hold.
func (o transactor) releaseBy(ctx context.Context, holds []*Hold, ops []Op) (gone *Hold, err error) {
	for {
		all := make([]Op, 0, len(holds)+len(ops))
		for _, h := range holds {
			all = append(all, DeleteOp(h.Node(), h.claim.node.Version()))
		}
		_, err := o.txn(ctx, holds[0].claim.sess, append(all, ops...))
		var refused *TxnError
		switch {
		case err == nil:
			return nil, nil
		case !errors.As(err, &refused):
			return nil, holds[0].ownFailure(err, 1)
		case refused.Index >= len(holds), !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrBadVersion):
			return nil, callersOwn(err, len(holds))
		}
		h := holds[refused.Index]
		if errors.Is(err, ErrBadVersion) {
			written, err := h.claim.node.Rewritten(ctx)
			if err != nil {
				return nil, h.ownFailure(err, 1)
			}
			if written {
				continue
			}
		}
		return h, loss{ErrNodeDeleted}
	}
}

func (h *Hold) beginReleasing(ctx context.Context, c *Client, s *session.Session) error {
	cl := h.claim
	if cl.client.shared != c.shared || cl.sess != s {
		return wire.Invalid("the holds are of two sessions")
	}
	if err := h.Err(); err != nil {
		return err
	}
	for {
		cl.mu.Lock()
		err, idle := h.mayEnd(), cl.under.Idle()
		if err == nil && idle == nil {
			cl.deleting = true
			cl.under.Begin()
		}
		cl.mu.Unlock()
		if err != nil || idle == nil {
			return err
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return calls.Ended(ctx)
		}
	}
}

var errReleasing = wire.Invalid("a transaction releases the hold already")

// mayEnd returns why a request for h cannot end the claim, or nil; cl.mu is
// held.
func (h *Hold) mayEnd() error {
	cl := h.claim
	switch {
	case h.err != nil:
		return h.err
	case h.in != nil:
		return errNested
	case len(cl.holds) > 1:
		return wire.Invalid("%d other handles of the hold are not released", len(cl.holds)-1)
	case cl.deleting:
		return errReleasing
	}
	return nil
}

// stopReleasing unblocks a pending delete and has the watch on our node look
// again: its events meanwhile were ignored.
func stopReleasing(holds []*Hold, err error) {
	for _, h := range holds {
		h.claim.mu.Lock()
		h.claim.unsure = h.claim.unsure || errors.Is(err, ErrUnconfirmed)
		h.claim.endReleasing()
		h.claim.mu.Unlock()
		h.claim.node.Watch()
	}
}

// endReleasing unblocks a pending delete; cl.mu is held.
func (cl *claim) endReleasing() {
	cl.deleting = false
	cl.under.End()
}

// releasedBy ends the claim, whose node the transaction has deleted.
func (cl *claim) releasedBy() {
	cl.mu.Lock()
	cl.gone = cmp.Or(cl.gone, ErrReleased)
	cl.endReleasing()
	if cl.removal == nil {
		close(cl.beginRemoval().done)
	}
	released := cl.endAll(ErrReleased)
	parts, _ := cl.attached()
	cl.mu.Unlock()
	cl.node.Forget()
	if len(parts) > 0 {
		_ = cl.sess.Go(func() { _ = removeParts(cl.partsLeft()) }) // fails when the session took them with it
	}
	cl.client.claims.remove(cl)
	for _, h := range released {
		h.tellReleased()
	}
}
