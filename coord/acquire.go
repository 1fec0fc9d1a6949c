package coord

import (
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Acquire is recipe.Acquire.
func (s *clientSteps) Acquire(ctx context.Context, spec *Spec, rule Rule) (*Hold, error) {
	c := (*Client)(s)
	own, h, outer, err := spec.inside(ctx, c, rule)
	switch {
	case h != nil || err != nil:
	case outer == nil:
		h, err = c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.join(ctx, own) }, rule, false)
	default:
		h, err = c.acquireBehind(ctx, own, rule, outer)
	}
	return h, c.failure("acquire", spec.dir(), err)
}

// acquireBehind is Acquire inside of a hold of the same line that the claim
// would wait for.
func (c *Client) acquireBehind(ctx context.Context, spec *Spec, rule Rule, outer *Hold) (*Hold, error) {
	h, err := c.Synced().tryInLine(ctx, spec, rule)
	switch {
	case !errors.Is(err, ErrBusy):
		return h, err
	case ctx.Err() != nil:
		return nil, calls.Ended(ctx)
	}
	return nil, wire.Invalid("the context carries a hold of the same line, %s, for which this claim would wait for ever; "+
		"make it re-entrant, or use a context without the hold", outer.Node())
}

var errNoRule = wire.Invalid("the rule is nil")

// Join is recipe.Join.
func (s *clientSteps) Join(ctx context.Context, spec *Spec) (*Hold, []string, error) {
	c := (*Client)(s)
	own, err := spec.complete(ctx, c)
	var h *Hold
	if err == nil {
		h, err = c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.join(ctx, own) }, nil, false)
	}
	if err != nil {
		return nil, nil, c.failure("stand", spec.dir(), err)
	}
	view := h.claim.view
	h.claim.view = nil
	if view == nil {
		return h, nil, nil
	}
	return h, slices.Clone(view.Names), nil
}

// TryAcquire is recipe.TryAcquire.
func (s *clientSteps) TryAcquire(ctx context.Context, spec *Spec, rule Rule) (*Hold, error) {
	c := (*Client)(s)
	own, h, _, err := spec.inside(ctx, c, rule)
	if h == nil && err == nil {
		h, err = c.tryInLine(ctx, own, rule)
	}
	return h, c.failure("try", spec.dir(), err)
}

func (c *Client) tryInLine(ctx context.Context, spec *Spec, rule Rule) (*Hold, error) {
	if err := spec.isFree(ctx, c, rule); err != nil {
		return nil, err
	}
	return c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.join(ctx, spec) }, rule, true)
}

// isFree returns why a claim that joins the line now would have to wait, or
// nil.
func (s *Spec) isFree(ctx context.Context, c *Client, rule Rule) error {
	names, err := c.Children(ctx, s.Line.Dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return err
	}
	line, foreign := s.Line.parse(names, c.opts.dialect)
	newcomer := Contender{Kind: s.Kind, Sequence: sequenceLimit - 1, Dialect: c.opts.dialect}
	if before, _ := around(newcomer, foreign); len(before) > 0 {
		return refuse(before[0])
	}
	if _, granted := rule(line); !granted {
		return ErrBusy
	}
	return nil
}

// acquire joins by join, and waits until rule grants the claim its turn. A nil
// rule grants it immediately. Thousands may wait here: each call from here to
// the wait adds to their stacks, which stay at 4 KiB.
func (c *Client) acquire(
	ctx context.Context, join func(context.Context) (*claim, error), rule Rule, try bool,
) (*Hold, error) {
	var deleted session.Repeats
	for {
		cl, err := join(ctx)
		if err == nil {
			var h *Hold
			var w *waiter
			w, err = cl.beginTurn(ctx, rule, try)
			if w != nil {
				err = w.await(ctx)
			}
			if err == nil {
				h, err = cl.grant(ctx)
			}
			if err == nil {
				return h, nil
			}
			cl.giveUp(ctx, err)
			ctx = calls.Patient(ctx)
		}
		again := errors.Is(err, ErrNodeDeleted) || errors.Is(err, ErrLost) || transient(err)
		if err == ErrNodeExists { // not by an operation of the caller's
			if again, err = cl.awaitFormer(ctx, err); again {
				continue
			}
		}
		if !again {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, calls.Ended(ctx, err)
		}
		if errors.Is(err, ErrNodeDeleted) {
			deleted.Pause(ctx, c.keeper.Current())
		}
		if err := cl.removeFormer(ctx); err != nil {
			return nil, err
		}
	}
}

// removeFormer makes sure that the node of a claim whose session is over is
// gone before the next one is made. A session that this client gave up lives on
// at the servers until they expire it, and a recipe that counts contenders
// would count two.
//
// The old session cannot create the node after the write of the fresh read:
// this client was cut off for longer than T, and servers refuse requests from a
// session's older connection. A create that comes late all the same goes with
// the session.
func (cl *claim) removeFormer(ctx context.Context) error {
	if cl == nil || cl.sess.Err() == nil || cl.named != nil {
		return nil
	}
	c, dir, nodes := cl.client.Synced(), cl.spec.Line.Dir, []string{cl.path()}
	if cl.node.Path() == "" { // it is not known whether there is one
		names, err := c.Children(ctx, dir)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		nodes = nil
		for _, name := range names {
			if cl.node.MayHave(name) {
				nodes = append(nodes, znode.Join(dir, name))
			}
		}
	}
	for _, node := range nodes {
		if cl.node.Nameless { // others may have the name, too
			stat, there, err := c.Exists(ctx, node)
			if err != nil {
				return err
			}
			if !there || stat.Owner != cl.sess.ID() {
				continue
			}
		}
		err := c.retry(ctx, func(ctx context.Context) error { return c.Delete(ctx, node, -1) })
		if errors.Is(err, ErrNoAuth) {
			err = c.Wait(ctx, func(v *View) (gone bool, err error) {
				_, _, err = v.Get(node)
				return false, err
			})
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}

// awaitFormer waits until a former session of this client, which servers have
// not ended yet, leaves the name. It fails with taken if another has it.
func (cl *claim) awaitFormer(ctx context.Context, taken error) (free bool, err error) {
	former := cl.client.keeper.Former()
	if len(former) == 0 || cl.named == nil {
		return false, taken
	}
	err = cl.client.Wait(ctx, func(v *View) (done bool, err error) {
		stat, there, err := v.Exists(cl.named.Path)
		free = err == nil && !there
		return !slices.Contains(former, stat.Owner), err
	})
	if errors.Is(err, ErrNoAuth) || err == nil && !free {
		err = taken
	}
	return free, err
}

// giveUp leaves the line. Unless the caller is in a hurry, it waits until the
// node is gone.
func (cl *claim) giveUp(ctx context.Context, why error) {
	cl.emit(event.Ended, cl.joinedAt(), why)
	r := cl.leave(cl.atOnce)
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// inside completes the spec, and decides an acquire by it inside of a hold of
// the same line, that is, with a context that carries one (see [HeldIn]). If
// the hold covers the request, and the claim is re-entrant, the acquire gets
// another handle of the hold, without a request to a server. An exclusive claim
// inside of a shared hold is refused with [ErrInvalid]. In all other cases
// there is no decision; a claim that is not granted immediately would wait for
// the outer hold, which ends no earlier than its own context.
func (s *Spec) inside(ctx context.Context, c *Client, rule Rule) (own *Spec, h *Hold, outer *Hold, err error) {
	if rule == nil {
		return nil, nil, nil, errNoRule
	}
	if s, err = s.complete(ctx, c); err != nil {
		return nil, nil, nil, err
	}
	held, ok := holdIn(ctx, c, s.Line.Dir, func(h *Hold) bool { return h.claim.spec.Line.Dialect == s.Line.Dialect })
	switch {
	case !ok || ctx.Err() != nil || !held.claim.spec.Line.has(s.Kind):
		return s, nil, nil, nil
	case s.Exclusive && !held.claim.spec.Exclusive:
		return s, nil, held, wire.Invalid(
			"the context carries a shared hold of the same line, %s, which cannot be upgraded: release it first", held.Node())
	case !s.Reentrant:
		return s, nil, held, nil
	}
	h, err = (*holdSteps)(held).Dup(nil)
	return s, h, held, err
}
