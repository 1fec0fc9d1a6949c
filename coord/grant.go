package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
)

// grant is [batch.grant] of one claim.
func (cl *claim) grant(ctx context.Context) (*Hold, error) {
	holds, err := batch{cl}.grant(ctx)
	if err != nil {
		return nil, err
	}
	return holds[0], nil
}

// grant makes the holds of all the claims or of none, once the trust window is
// open and every node is known to be there. All waiting comes first: a hold
// that waited for the others could be lost before it is returned.
func (t batch) grant(ctx context.Context) (holds []*Hold, err error) {
	for _, cl := range t {
		cl.keepOpen(true)
	}
	for known := false; !known; known = t.known() {
		if err := t.look(ctx); err != nil {
			return nil, err
		}
		if err := t[0].sess.AwaitWindow(ctx); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(t) && err == nil; i++ {
		var h *Hold
		if h, err = t[i].hold(); err == nil {
			holds = append(holds, h)
		}
	}
	for _, h := range holds {
		err = cmp.Or(h.Err(), err) // observers, who are told of each, may take their time
	}
	if err != nil {
		for _, h := range holds {
			h.Abandon()
		}
		return nil, err
	}
	return holds, nil
}

// known reports whether every node is known to be there.
func (t batch) known() bool {
	return !slices.ContainsFunc(t, func(cl *claim) bool { return !cl.node.Known() })
}

// look reads and watches the nodes that are not known to be there, in one round
// trip.
func (t batch) look(ctx context.Context) error {
	if t.known() {
		return nil
	}
	failures := make([]error, len(t))
	var looking sync.WaitGroup
	for i, cl := range t {
		if cl.node.Known() {
			continue
		}
		looking.Go(func() {
			if failures[i] = cl.node.Look(ctx); errors.Is(failures[i], ErrNoNode) {
				failures[i] = cl.markGone()
			}
		})
	}
	looking.Wait()
	return calls.JoinedWithin(ctx, failures...)
}

// hold makes the hold, unless the node is gone or about to be deleted.
func (cl *claim) hold() (*Hold, error) {
	cl.mu.Lock()
	if cl.gone != nil || cl.removal != nil {
		cl.mu.Unlock()
		return nil, cl.goneErr()
	}
	h := newHold(cl, nil)
	cl.mu.Unlock()
	cl.emit(event.Granted, cl.joinedAt(), nil)
	return h, nil
}

// markGone notes that the node is gone, and returns why: the claim may have
// been left meanwhile.
func (cl *claim) markGone() error {
	cl.lose(ErrNodeDeleted, true)
	return cmp.Or(cl.goneErr(), ErrReleased)
}

// goneErr returns why the claim can no longer be granted, or nil: its node is
// gone, or about to be deleted.
func (cl *claim) goneErr() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	switch {
	case cl.gone != nil:
		return fmt.Errorf("claim %s: %w", cl.node.Name(), cl.gone)
	case cl.removal != nil:
		return ErrReleased
	}
	return nil
}
