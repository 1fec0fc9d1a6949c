package coord

import (
	"context"
	"slices"
)

// sameLine reports whether a claim contends with one of the other spec in the
// same directory.
func (s Spec) sameLine(other Spec) bool {
	return s.Name == other.Name && (s.Name != "" || slices.Contains(other.Line.Kinds, s.Kind))
}

// inside decides what an acquire by spec is answered with inside of a hold of
// the same line, that is, with a context that carries one (see [HeldIn]). If
// the hold covers what is asked for, and the claim is re-entrant, it is another
// handle of the hold, without a request. An exclusive claim inside of a shared
// hold is refused with [ErrUpgrade]. In all other cases there is no decision:
// claim and wait.
func (c *Client) inside(ctx context.Context, spec Spec) (h *Hold, decided bool, err error) {
	held, ok := HeldIn(ctx, c, spec.Line.Dir)
	switch {
	case !ok || ctx.Err() != nil || !spec.sameLine(held.claim.spec):
		return nil, false, nil
	case spec.Exclusive && !held.claim.spec.Exclusive:
		return nil, true, ErrUpgrade
	case !spec.Reentrant:
		return nil, false, nil
	}
	h, err = held.nest()
	return h, true, err
}
