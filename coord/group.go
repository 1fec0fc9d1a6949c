package coord

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Group is several holds as one: it ends when the first of them does. Like a
// [Hold] it is safe for concurrent use, and has to be released.
type Group struct {
	holds []*Hold
	held  context.Context // ends with the first hold
	ask   sync.Once
	tell  sync.Once
	asked chan struct{}
}

// NewGroup makes one of the holds, of which there must be at least one. Release
// the holds only by the group.
func NewGroup(first *Hold, more ...*Hold) *Group {
	g := &Group{holds: append([]*Hold{first}, more...), asked: make(chan struct{})}
	g.held = g.Context(context.Background())
	return g
}

// Holds returns the members, in the order given.
func (g *Group) Holds() []*Hold { return slices.Clone(g.holds) }

// Done is closed when a member has ended, for any reason.
func (g *Group) Done() <-chan struct{} { return g.held.Done() }

// Err returns nil while every member can be trusted, and otherwise the error of
// one that cannot; see [Hold.Err].
func (g *Group) Err() error {
	var released error
	for _, h := range g.holds {
		switch err := h.Err(); {
		case errors.Is(err, ErrReleased):
			released = err
		case err != nil:
			return err
		}
	}
	return released
}

// Deadline returns the earliest of the members'; see [Hold.Deadline].
func (g *Group) Deadline() time.Time {
	first := g.holds[0].Deadline()
	for _, h := range g.holds[1:] {
		if d := h.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Context returns a context that ends when a member or parent does;
// context.Cause says which. It carries every member: see [HeldIn].
func (g *Group) Context(parent context.Context) context.Context {
	for _, h := range g.holds {
		parent = h.Context(parent)
	}
	return parent
}

// Revoked is closed when a member was asked for; see [Hold.Revoked].
func (g *Group) Revoked() <-chan struct{} {
	g.ask.Do(func() {
		for _, h := range g.holds {
			asked := h.Revoked()
			// Refused only when the session is over, and the group with it.
			_ = h.claim.sess.Go(func() {
				select {
				case <-asked:
					g.tell.Do(func() { close(g.asked) })
				case <-g.held.Done():
				}
			})
		}
	})
	return g.asked
}

// Release releases every member; see [Hold.Release]. All are deleted together,
// in one round trip. The failures are reported in one error; [Hold.Release]
// says what nil means.
func (g *Group) Release(ctx context.Context) error {
	ctx = bound(ctx)
	failures := make([]error, len(g.holds))
	var releasing sync.WaitGroup
	for i, h := range g.holds {
		releasing.Go(func() { failures[i] = h.Release(ctx) })
	}
	releasing.Wait()
	return Joined(failures...)
}

// Attach makes an ephemeral node that is a part of the hold, in its session: it
// is made only while the hold's node exists, a request to give it up is one for
// the hold, and it is deleted along with the hold's node, however the hold
// ends. No other client must want the same path. data are by default the
// client's identity. It fails with [ErrInvalid] in a turn of a local queue and
// in any other nest ([Hold.Nest]). One request.
func (h *Hold) Attach(ctx context.Context, path string, data []byte) error {
	c := h.claim.client
	part, err := NameSpec{Path: path, Data: data}.claim(ctx, c)
	if err == nil {
		if err = h.Err(); h.in != nil {
			err = errNested
		}
	}
	if err == nil {
		part.part, part.node.Shared, part.node.Barred = h, false, h.Err
		part.enter(h.claim.sess)
		err = together{part}.join(ctx, func() error {
			_, err := h.Txn(context.Background(), CreateOp(path, part.spec.Data, Ephemeral)) // ends with the session
			return part.made(part.wanted(), 0, err)
		}, func(error) error { return part.ensureDir(ctx) })
	}
	if err == nil {
		err = h.adopt(part)
	}
	return c.Failure("attach", path, err)
}

// adopt makes a new claim a part of the hold it was made for. When that has
// ended meanwhile, the claim is left.
func (h *Hold) adopt(part *claim) error {
	h.claim.mu.Lock()
	ended := h.err
	if ended == nil {
		h.claim.parts = append(slices.Clone(h.claim.parts), part)
	}
	h.claim.mu.Unlock()
	if ended != nil {
		part.leave(part.atOnce)
	}
	return ended
}

// removeWith deletes the node and the nodes of its parts together: no reader
// finds the one without the other. Where one of them is gone, or may not be
// deleted, they are deleted one by one.
func (r *removal) removeWith(parts []*claim) error {
	cl := r.claim
	ctx, ops := context.Background(), []Op{DeleteOp(cl.path(), cl.node.Version())}
	for _, part := range parts {
		ops = append(ops, DeleteOp(part.path(), -1))
	}
	_, err := cl.client.txn(ctx, cl.sess, ops)
	var refused *TxnError
	if errors.As(err, &refused) && !transient(err) {
		return cl.node.DeleteOnce()
	}
	if err == nil {
		for _, part := range parts {
			part.lose(ErrNodeDeleted, true)
		}
	}
	return err
}

// removeParts deletes parts one by one.
func removeParts(parts []*claim) (err error) {
	for _, part := range parts {
		r := part.leave(part.atOnce)
		<-r.done
		err = cmp.Or(err, r.err)
	}
	return err
}

// partsLeft are the claim's parts whose deletion has not begun.
func (cl *claim) partsLeft() []*claim {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(cl.parts), func(part *claim) bool { return (*owner)(part).Leaving() })
}
