package coord

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Acquire joins the line, waits for the turn by rule, and returns the hold.
// When the own node is deleted or the session ends while waiting, it joins
// again, at the end of the line. When it returns an error, nothing is left
// behind: nodes that could not be deleted yet are deleted in the background.
// When ctx ends, it returns immediately. ctx bounds the waiting only, not the
// hold. With a ctx that carries a hold of the same line, see [Spec.Reentrant];
// a claim that would wait for that hold is refused with [ErrInvalid], and so is
// any exclusive claim inside of a shared hold.
func (c *Client) Acquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	h, outer, err := c.inside(ctx, spec, rule)
	switch {
	case h != nil || err != nil:
	case outer != nil:
		h, err = c.acquireInside(ctx, spec, rule, outer)
	default:
		h, err = c.acquireInLine(ctx, spec, rule)
	}
	return h, c.Failure("acquire", spec.Line.Dir, err)
}

// Stand is Acquire for a claim whose existence is all that matters, such as a
// member of a group or a lease that is counted: it holds immediately, whoever
// else is there. It returns the names in the directory as they were listed
// along with the create, or right after it, unless the claim is
// [Spec.Unlisted]: a contender that is missing there came later or is gone.
func (c *Client) Stand(ctx context.Context, spec Spec) (*Hold, []string, error) {
	h, err := c.acquireInLine(ctx, spec, nil)
	if err != nil {
		return nil, nil, c.Failure("stand", spec.Line.Dir, err)
	}
	view := h.claim.view
	if h.claim.view = nil; view == nil {
		return h, nil, nil
	}
	return h, slices.Clone(view.Names), nil
}

// TryAcquire is Acquire without waiting for others: [ErrBusy] unless the
// claim's turn comes without a wait. It looks before it writes: a busy line
// costs one request and no write. While no server can be reached, it waits for
// one until ctx ends.
func (c *Client) TryAcquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	h, _, err := c.inside(ctx, spec, rule)
	if h == nil && err == nil {
		h, err = c.tryAcquire(ctx, spec, rule)
	}
	return h, c.Failure("try", spec.Line.Dir, err)
}

func (c *Client) tryAcquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	full, err := spec.complete(ctx, c)
	if err != nil {
		return nil, err
	}
	names, err := c.Children(ctx, spec.Line.Dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	line, foreign := full.Line.parse(names, c.opts.dialect)
	newcomer := Contender{Kind: spec.Kind, Sequence: sequenceLimit - 1, Dialect: c.opts.dialect}
	if before, _ := around(newcomer, foreign); len(before) > 0 {
		return nil, refuse(before[0])
	}
	if _, granted := rule(line); !granted {
		return nil, ErrBusy
	}
	return c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.join(ctx, full) }, rule, true)
}

// Patient returns a context for what a call acquires after it has waited:
// [Client.Acquire] then waits for a contender that cannot be honoured ([Line])
// instead of failing with [ErrForeign], which would come late.
func Patient(ctx context.Context) context.Context {
	if IsPatient(ctx) {
		return ctx
	}
	return context.WithValue(ctx, patientKey{}, true)
}

// IsPatient reports whether ctx is, or descends from, one that [Patient] made.
func IsPatient(ctx context.Context) bool { return ctx.Value(patientKey{}) != nil }

type patientKey struct{}

func (c *Client) acquireInLine(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	full, err := spec.complete(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.join(ctx, full) }, rule, false)
}

// acquire joins by join, and waits for the turn.
func (c *Client) acquire(ctx context.Context, join func(context.Context) (*claim, error), rule Rule, try bool) (*Hold, error) {
	for {
		cl, err := join(ctx)
		if err == nil {
			var h *Hold
			if h, err = cl.turn(ctx, rule, try); err == nil {
				return h, nil
			}
			cl.giveUp(ctx, err)
			ctx = Patient(ctx)
		}
		again := errors.Is(err, ErrNodeDeleted) || errors.Is(err, ErrLost) || transient(err)
		if errors.Is(err, ErrNodeExists) {
			if again, err = c.awaitFormer(ctx, cl, err); again {
				continue
			}
		}
		if !again {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, session.Ended(ctx, err)
		}
		if err := c.removeFormer(ctx, cl); err != nil {
			return nil, err
		}
	}
}

// removeFormer makes sure that the node of a claim whose session is over is
// gone before the next one is made. A session that this client gave up lives on
// at the servers until they expire it, and a recipe that counts contenders
// would count two.
//
// The old session cannot create the node after this write: this client was cut
// off for longer than T, and servers refuse requests from a session's older
// connection. A create that comes late all the same goes with the session.
func (c *Client) removeFormer(ctx context.Context, cl *claim) error {
	if cl == nil || cl.sess.Err() == nil || cl.named != nil {
		return nil
	}
	dir, nodes := cl.spec.Line.Dir, []string{cl.path()}
	if cl.node.Path() == "" { // it is not known whether there is one
		if err := c.flush(ctx); err != nil {
			return err
		}
		names, err := c.Children(ctx, dir)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, cl.node.Stem) })
		nodes = names
		for i, name := range names {
			nodes[i] = znode.Join(dir, name)
		}
	}
	for _, node := range nodes {
		err := c.Retry(ctx, func(ctx context.Context) error { return c.Delete(ctx, node, -1) })
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

// awaitFormer waits until a name is free that a former session of this client
// has, which servers have not ended yet. It fails with taken if another has it.
func (c *Client) awaitFormer(ctx context.Context, cl *claim, taken error) (free bool, err error) {
	former := c.keeper.Former()
	if len(former) == 0 || cl.named == nil {
		return false, taken
	}
	err = c.Wait(ctx, func(v *View) (done bool, err error) {
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
	cl.emit(event.Ended, cl.joined, why)
	r := cl.leave(cl.atOnce)
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// inside decides an acquire by spec inside of a hold of the same line, that is,
// with a context that carries one (see [HeldIn]). If the hold covers the
// request, and the claim is re-entrant, the acquire gets another handle of the
// hold, without a request to a server. An exclusive claim inside of a shared
// hold is refused with [ErrInvalid]. In all other cases there is no decision,
// but a claim that is not granted immediately waits for the outer hold, which
// ends no earlier than its own context.
func (c *Client) inside(ctx context.Context, spec Spec, rule Rule) (h *Hold, outer *Hold, err error) {
	held, ok := HeldIn(ctx, c, spec.Line.Dir)
	switch {
	case rule == nil:
		return nil, nil, wire.Invalid("a rule is missing; Client.Stand takes none")
	case !ok || ctx.Err() != nil || !held.claim.spec.Line.has(spec.Kind):
		return nil, nil, nil
	case spec.Exclusive && !held.claim.spec.Exclusive:
		return nil, held, wire.Invalid("the context carries a shared hold of the same line, %s, which cannot be upgraded: release it first", held.Node())
	case !spec.Reentrant:
		return nil, held, nil
	}
	h, err = held.Nest(nil)
	return h, held, err
}

// acquireInside acquires inside of a hold of the same line, if that can be
// without waiting.
func (c *Client) acquireInside(ctx context.Context, spec Spec, rule Rule, outer *Hold) (*Hold, error) {
	h, err := c.tryAcquire(ctx, spec, rule)
	switch {
	case !errors.Is(err, ErrBusy):
		return h, err
	case ctx.Err() != nil:
		return nil, session.Ended(ctx)
	}
	return nil, wire.Invalid("the context carries a hold of the same line, %s, for which this claim would wait for ever; "+
		"make it re-entrant, or use a context without the hold", outer.Node())
}

// Grace returns ctx, or when that has ended already, a context that lasts for
// another 50 ms: for a release whose caller has no more time. Servers in good
// health answer within that; a release that is not confirmed by then goes on in
// the background. A release with either context ends with it.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) {
	decided := context.WithValue(ctx, boundKey{}, true)
	if ctx.Err() == nil {
		return decided, func() {}
	}
	return context.WithTimeoutCause(context.WithoutCancel(decided), 50*time.Millisecond, session.Ended(ctx))
}

type boundKey struct{}

// bound returns the context that bounds a release called with ctx: ctx, or
// nothing if ctx has ended already. A context that ends later ends during the
// call.
func bound(ctx context.Context) context.Context {
	if ctx.Value(boundKey{}) != nil {
		return ctx
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithValue(ctx, boundKey{}, true)
}
