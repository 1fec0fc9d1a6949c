package coord

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// sessionFor returns the session for a claim: that of the hold it is a part of,
// or the client's.
func (c *Client) sessionFor(ctx context.Context, shape *shape) (*session.Session, error) {
	if shape.part != nil {
		return shape.part.claim.sess, shape.part.Err()
	}
	return c.keeper.Session(ctx)
}

// Attach makes an ephemeral node that is a part of the hold, in its session: it
// is made only while the hold's node exists, a request to give it up is one for
// the hold, and it is deleted along with the hold's node, however the hold
// ends. No other client must want the same path. data are by default the
// client's identity. One request.
func (h *Hold) Attach(ctx context.Context, path string, data []byte) error {
	c := h.claim.client
	shape, err := NameSpec{Path: path, Data: data}.shape(c)
	if err == nil {
		shape.part = h
		_, err = c.join(ctx, shape)
	}
	return c.Failure("attach", path, err)
}

// attach makes a new claim a part of the hold it was made for. When that has
// ended meanwhile, the claim is left.
func (cl *Claim) attach() error {
	h := cl.shape.part
	h.claim.mu.Lock()
	ended := h.err
	if ended == nil {
		h.claim.parts = append(slices.Clone(h.claim.parts), cl)
	}
	h.claim.mu.Unlock()
	if ended != nil {
		cl.leave()
		return ended
	}
	return nil
}

// removeWithParts deletes the node and those of its parts, all at once: no
// reader finds the one without the other. Where one of them is gone, or may not
// be deleted, they are deleted one by one.
func (cl *Claim) removeWithParts(parts []*Claim) error {
	ctx, ops := context.Background(), []Op{DeleteOp(cl.Node(), -1)}
	for _, part := range parts {
		ops = append(ops, DeleteOp(part.Node(), -1))
	}
	_, err := cl.client.txn(ctx, cl.sess, ops)
	var refused *TxnError
	if errors.As(err, &refused) && !transient(err) {
		return cl.node.DeleteOnce()
	}
	if err == nil {
		for _, part := range parts {
			part.vanish(ErrNodeDeleted)
		}
	}
	return err
}

// removeParts deletes the parts that are left of a claim whose node is gone.
func (cl *Claim) removeParts() (err error) {
	for _, part := range cl.partsLeft() {
		r := part.leave()
		<-r.done
		err = cmp.Or(err, r.err)
	}
	return err
}

// partsLeft are the claim's parts whose deletion has not begun.
func (cl *Claim) partsLeft() []*Claim {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(cl.parts), (*Claim).finished)
}
