package coord

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Downgrade is rwlock.Downgrade.
func (s *holdSteps) Downgrade(ctx context.Context) (*Hold, error) {
	h := (*Hold)(s)
	shared, err := h.downgrade(ctx)
	return shared, h.claim.client.failure("downgrade", h.Node(), err)
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
	cl.rareState().along = nil
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
	return exchange{
		cl,
		c.newClaim(&spec,
			fmt.Sprintf("%s%010d", dialect.Prefix(c.opts.dialect, dialect.GUID(c.opts.dialect), kind), self.Sequence)),
	}, nil
}

// run makes the exchange, or deletes the node of the claim that is to go. It
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

// swap makes the exchange and blocks until the outcome is certain. It starts no
// attempt when ctx has ended.
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
