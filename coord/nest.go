package coord

import (
	"cmp"
	"errors"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errNested: what only the one who has the node may do.
var errNested = wire.Invalid("the hold is handed on, as a turn of a local queue is, and its node stays")

// nest is the handles that one user has of a hold that is handed on from user
// to user.
type nest struct {
	in    *nest // that this one is inside of, or nil
	uses  int   // handles, and transactions under way; guarded by claim.mu
	ended func()
}

// use counts one more use; cl.mu is held.
func (n *nest) use() {
	for ; n != nil; n = n.in {
		n.uses++
	}
}

// unuse counts one use less. It returns the callbacks of the nests that end
// with this use; cl.mu is held.
func (n *nest) unuse() (over []func()) {
	for ; n != nil; n = n.in {
		n.uses--
		if n.uses == 0 {
			over = append(over, n.ended)
		}
	}
	return over
}

// Dup is recipe.Dup.
func (s *holdSteps) Dup(onLast func()) (*Hold, error) {
	h := (*Hold)(s)
	if err := h.Err(); err != nil {
		return nil, opError("dup", h.Node(), err)
	}
	nested, err := h.another(onLast)
	if err != nil {
		return nil, opError("dup", h.Node(), err)
	}
	h.claim.emit(event.Granted, nested.granted, nil)
	return nested, nil
}

func (h *Hold) another(ended func()) (*Hold, error) {
	cl := h.claim
	cl.mu.Lock()
	defer cl.mu.Unlock()
	switch {
	case h.err != nil:
		return nil, h.err
	case cl.deleting:
		return nil, errReleasing
	case ended == nil:
		return newHold(cl, h.in), nil
	case cl.unsure:
		return nil, ErrUnconfirmed
	}
	return newHold(cl, &nest{in: h.in, ended: ended}), nil
}

// during carries out a transaction of h. A nest that h is in does not end
// before the transaction does.
func (h *Hold) during(transact func() error) error {
	cl := h.claim
	cl.mu.Lock()
	named := cl.named != nil // the next owner's node would do for ours
	if err := h.err; err != nil || named && cl.deleting {
		cl.mu.Unlock()
		return cmp.Or(err, errReleasing)
	}
	h.in.use()
	if named {
		cl.under.Begin()
	}
	cl.mu.Unlock()
	err := transact()
	cl.mu.Lock()
	if named {
		cl.under.End()
	}
	cl.unsure = cl.unsure || errors.Is(err, ErrUnconfirmed)
	over := h.in.unuse()
	cl.mu.Unlock()
	for _, ended := range over {
		ended()
	}
	return err
}
