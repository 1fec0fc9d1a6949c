package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Release gives the hold up and deletes its node. It returns nil only when the
// node was deleted, was gone already, or its session is over for this client; a
// hold that had been lost is released with nil, too, and [Hold.Err] goes on
// reporting the loss. A session can be over for its client before it is for the
// servers: servers that the client could not reach keep the node, and others
// wait for it, until the client can close the session there, or for up to the
// session timeout after they can serve again. Otherwise it returns
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

// Forfeit ends the hold and all its handles immediately, as lost: [Hold.Err]
// matches [ErrLost] and the cause. Its node is deleted in the background. It is
// for one who bounds what others do with the hold; a hold that has ended
// already is left alone.
func (h *Hold) Forfeit(cause error) {
	if h.Err() == nil {
		h.claim.lose(fmt.Errorf("forfeited: %w", cmp.Or(cause, ErrNodeDeleted)), false)
	}
}

// Along has the operations carried out together with the deletion of the hold's
// node when the hold is released, all or nothing, and not when it is lost.
// Their effect thus distinguishes a release by the owner from any other end.
// They replace the operations of an earlier call. If the ensemble refuses them,
// the node is deleted without them. [ExactlyOnce.Release] has its own
// operations instead, and [Hold.Downgrade] drops them. Along fails with
// [ErrInvalid] in a nest ([Hold.Nest]). No request.
func (h *Hold) Along(ops ...Op) error {
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
		cl.along = slices.Clone(ops)
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

// removal is the deletion of a claim's node, once it has begun.
type removal struct {
	claim *claim
	done  chan struct{}
	err   error // set before done is closed; before, the failure of atOnce
}

// waking returns what wakes the one who waits for the claim's turn, also when
// the node is to be deleted.
func (cl *claim) waking() session.Waker {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.waker = session.NewWaker()
	return cl.waker
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
	if cl.gone != nil && len(cl.parts) == 0 || begin(remove) != nil {
		r.over(nil)
	}
	return r
}

// atOnce begins a removal without a goroutine, if the node can be deleted by
// one request that need not wait for anything. cl.mu is held.
func (cl *claim) atOnce(remove func()) error {
	if cl.gone != nil || cl.unsure || len(cl.parts)+len(cl.along) > 0 || cl.under.Idle() != nil || len(cl.node.Proof) > 0 {
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
		if parts := cl.partsLeft(); len(parts)+len(cl.along) > 0 {
			return r.removeWith(parts)
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

// wait waits for the answer, at most for limit and until ctx ends. Where ctx is
// a context of a hold, which the release ends, wait goes on until the context
// that ctx was made from ends, or the deadline of ctx is over.
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
		if trouble := r.claim.node.Trouble(); trouble != nil {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, trouble)
		}
		return fmt.Errorf("%w: no answer for %v", ErrUnconfirmed, limit)
	}
}

// Downgrade turns a writer's hold into a reader's, without a gap: one
// transaction deletes the write node and creates a read node with the same
// sequence number. There is no moment without a node, no contender gets in
// between, and the place in the line stays the same. The readers that wait
// right behind get their turn, writers do not.
//
// The old hold ends with the call, as released, even if the call fails, and the
// contexts made from it end when Downgrade returns: make new ones from the hold
// returned, which belongs to the same session and has no token. A request to
// give up the old hold ([Hold.Revoked]) is answered by that; the new one can be
// revoked on its own.
//
// It fails with [ErrInvalid], and leaves the hold alone, when the hold is not a
// writer's (a mutex has no read side), while [ExactlyOnce.Release] is under
// way, or when the hold has other handles ([Spec.Reentrant]) that are not
// released: their owners would lose their exclusion unawares. With any other
// error nothing is held any more, and nothing is left behind: nodes that could
// not be deleted yet are deleted in the background. When the connection fails
// before the reply comes, Downgrade finds out what happened as [Client.Acquire]
// does, and tries again if it must. One request, one round trip.
func (h *Hold) Downgrade(ctx context.Context) (*Hold, error) {
	shared, err := h.downgrade(ctx)
	return shared, h.claim.client.Failure("downgrade", h.Node(), err)
}

func (h *Hold) downgrade(ctx context.Context) (shared *Hold, err error) {
	cl := h.claim
	if err := h.Err(); err != nil {
		return nil, err
	}
	e, err := exchangeOf(cl, dialect.Read)
	if err != nil {
		return nil, err
	}
	if err := h.handOver(); err != nil {
		return nil, err
	}
	defer h.tellEnded()
	cl.emit(event.Ended, h.granted, ErrReleased)
	err = e.run(ctx)
	if err == nil {
		e.next.hasJoined()
		if shared, err = e.next.grant(ctx); err != nil {
			e.next.giveUp(ctx, err)
		}
	}
	if (errors.Is(err, ErrNodeDeleted) || err != nil && cl.sess.Err() != nil) && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w: %w", ErrLost, err) // the hold went with its node or its session
	}
	return shared, err
}

// handOver ends h and marks the claim as leaving: its node's deletion is no
// loss then. The caller must see to the deletion and report it.
func (h *Hold) handOver() error {
	cl := h.claim
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if err := h.mayEnd(); err != nil {
		return err
	}
	if cl.gone != nil || cl.removal != nil {
		return fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted)
	}
	h.end(ErrReleased)
	cl.along = nil
	cl.beginRemoval()
	return nil
}

// exchange puts a claim in the place of another in the line, in one
// transaction.
type exchange struct{ from, next *claim }

// exchangeOf prepares a claim of a kind that is to take a writer's place, under
// a name of its own.
func exchangeOf(cl *claim, kind string) (e exchange, err error) {
	c, self := cl.client, cl.own()
	if cl.named != nil || !cl.spec.Exclusive || !cl.spec.Line.mayReturn(self) {
		return e, wire.Invalid("%s is not a writer's, whose place a reader may take", cl.node.Name())
	}
	spec := *cl.spec
	spec.Kind, spec.Exclusive = kind, false
	return exchange{cl, c.newClaim(&spec, fmt.Sprintf("%s%010d", dialect.Prefix(c.opts.dialect, dialect.GUID(c.opts.dialect), kind), self.Sequence))}, nil
}

// run makes the exchange, or deletes the node of the one that is to go. It
// returns when that is done, or when ctx ends: then both nodes are deleted in
// the background.
func (e exchange) run(ctx context.Context) error {
	e.next.enter(e.from.sess)
	var rest error
	return znode.Certain(ctx, e.from.sess, func() error {
		err := e.swap(ctx)
		if err != nil {
			rest = e.from.removal.remove()
		}
		return err
	}, func(err error, left bool) {
		switch {
		case err != nil:
			e.next.client.claims.remove(e.next)
		case left:
			r := e.next.leave(e.next.atOnce)
			<-r.done
			rest = r.err
		}
		e.from.removal.end(rest)
	})
}

// swap makes the exchange and blocks until that is certain, or certain not to
// be. It starts no attempt when ctx has ended.
func (e exchange) swap(ctx context.Context) error {
	if ctx.Err() != nil {
		return calls.Ended(ctx)
	}
	c, path := e.from.client, e.next.wanted()
	ops := []Op{
		CheckOp(e.from.path(), -1),
		EphemeralOp(c.relative(path), e.next.spec.Data),
		DeleteOp(e.from.path(), -1),
	}
	return lostBy(znode.Create(ctx, func() error {
		// Not bound to ctx: the outcome must be known to clean up after it.
		_, err := c.txn(context.Background(), e.from.sess, ops)
		return e.next.made(path, 0, err)
	}, nil, &e.next.node))
}

// lostBy recognises the failures that mean that our node is gone.
func lostBy(err error) error {
	var refused *TxnError
	switch {
	case errors.As(err, &refused) && errors.Is(err, ErrNoNode):
		return fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted)
	case errors.Is(err, ErrSessionExpired), errors.Is(err, ErrClosed):
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}
