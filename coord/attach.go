package coord

import (
	"context"
	"slices"
)

// Attach is recipe.Attach.
func (s *holdSteps) Attach(ctx context.Context, path string, data []byte) error {
	h := (*Hold)(s)
	c := h.claim.client
	part, err := NameSpec{Path: path, Data: data, Recipe: h.claim.spec.Recipe}.claim(ctx, c)
	if err == nil {
		if err = h.Err(); h.in != nil {
			err = errNested
		}
	}
	if err == nil {
		part.part, part.node.Plain.Shared, part.node.Plain.Barred = h, false, h.Err
		part.enter(h.claim.sess)
		err = batch{part}.join(ctx, func() error {
			_, err := h.Txn(context.Background(), EphemeralOp(path, part.spec.Data)) // ends with the session
			return part.made(part.wanted(), 0, err)
		}, func(error) error { return part.ensureDir(ctx) })
	}
	if err == nil {
		err = h.adopt(part)
	}
	return c.failure("attach", path, err)
}

// adopt makes a new claim a part of the hold it was made for. When that has
// ended meanwhile, the claim is left.
func (h *Hold) adopt(part *claim) error {
	h.claim.mu.Lock()
	ended := h.err
	if ended == nil {
		rare := h.claim.rareState()
		rare.parts = append(slices.Clone(rare.parts), part)
	}
	h.claim.mu.Unlock()
	if ended != nil {
		part.leave(part.atOnce)
	}
	return ended
}

// partsLeft are the claim's parts whose deletion has not begun.
func (cl *claim) partsLeft() []*claim {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	parts, _ := cl.attached()
	return slices.DeleteFunc(slices.Clone(parts), func(part *claim) bool { return (*owner)(part).Leaving() })
}
