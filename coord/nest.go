package coord

import (
	"cmp"
	"errors"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errNested: what only the one who has the node may do.
var errNested = wire.Invalid("the hold is handed on, as a turn of a local queue is, and its node stays")

// nest is the handles that one user of a hold has, where the hold is handed on
// from one user to the next.
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

// Dup returns another handle of the same hold, with a Release of its own; the
// node is deleted when the last handle is released. No request.
//
// With onLast, which may be nil, the new handle begins a nest. The handles made
// inside of it belong to the nest as well, whether by Dup or by a re-entrant
// acquire with the handle's context. When the last of them has ended, and no
// transaction of theirs is under way, onLast is called: by the release or the
// transaction, before that returns, and in a goroutine of its own if the hold
// was lost. So a hold can be handed on from one user to the next. A nest does
// not decide about the node: [Hold.Attach], [Transactor.Release] and
// [Hold.Downgrade] fail in it with [ErrInvalid].
//
// Dup fails when the hold has ended, also when its trust window is over and
// nothing has noticed yet, and with [ErrInvalid] while [Transactor.Release] is
// under way. It begins no nest, and fails with [ErrUnconfirmed], once the
// outcome of a [Hold.Txn] was unknown, or the reply of a [Hold.Attach] was
// lost: that may be carried out later.
func (h *Hold) Dup(onLast func()) (*Hold, error) {
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
