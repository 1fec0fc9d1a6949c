package coord

import (
	"context"
	"errors"
)

// inside decides what an acquire by spec is answered with inside of a hold of
// the same line, that is, with a context that carries one (see [HeldIn]). If
// the hold covers what is asked for, and the claim is re-entrant, it is another
// handle of the hold, without a request. An exclusive claim inside of a shared
// hold is refused with [ErrUpgrade]. In all other cases there is no decision,
// but a claim that is not granted at once waits for the outer hold, which ends
// no earlier than its own context.
func (c *Client) inside(ctx context.Context, spec Spec) (h *Hold, outer *Hold, err error) {
	held, ok := HeldIn(ctx, c, spec.Line.Dir)
	switch {
	case !ok || ctx.Err() != nil || !held.claim.shape.Line.has(spec.Kind):
		return nil, nil, nil
	case spec.Exclusive && !held.claim.shape.Exclusive:
		return nil, held, ErrUpgrade
	case !spec.Reentrant:
		return nil, held, nil
	}
	h, err = held.nest()
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
		return nil, Ended(ctx)
	}
	return nil, invalid("the context carries a hold of the same line, %s, for which this claim would wait for ever; "+
		"make it re-entrant, or use a context without the hold", outer.Node())
}
