package coord

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/author"
	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Hold is a granted claim. It lasts until it is released or can no longer be
// trusted: when the session is over, when no write was acknowledged for so
// long that the servers may have given the session up (the trust window), when
// its node was deleted, or when the client is closed. It is safe for
// concurrent use.
//
// What no lock service can give: a process that is paused beyond the window
// learns of the loss when it wakes, and in the meantime another may hold. Have
// the resource check the [Hold.Token], or write through [Hold.Txn].
type Hold struct {
	holdOffer
	claim   *claim
	granted time.Time
	in      *nest // that it is a handle of, or nil

	// Guarded by claim.mu.
	err      error          // why it has ended, or nil
	over     []func()       // report the nests that ended with it
	done     session.Signal // that it has ended
	contexts map[*heldContext]struct{}
}

// holdSteps are what the author of a recipe may do with a hold, and its user
// may not: see [author.Of].
type holdSteps Hold

type holdOffer = author.Offer[*holdSteps]

// newHold makes another handle of a claim that holds; cl.mu is held.
func newHold(cl *claim, in *nest) *Hold {
	h := &Hold{claim: cl, granted: time.Now(), in: in}
	h.holdOffer = author.Make((*holdSteps)(h))
	in.use()
	cl.holds = append(cl.holds, h)
	return h
}

// Done is closed when the hold has ended, for any reason.
func (h *Hold) Done() <-chan struct{} {
	h.claim.mu.Lock()
	defer h.claim.mu.Unlock()
	return h.done.Done(h.err != nil)
}

// Err returns nil while the hold can be trusted. Afterwards it matches
// [ErrReleased], or [ErrLost] and the cause. It compares the clock with the
// trust window: after a pause of the process it is right at the first
// instruction, before Done is closed.
func (h *Hold) Err() error {
	if err := h.ended(); err != nil {
		return err
	}
	if cause := h.causeOfLoss(); cause != nil {
		h.claim.lose(cause, false)
	}
	return h.ended()
}

func (h *Hold) ended() error {
	h.claim.mu.Lock()
	defer h.claim.mu.Unlock()
	return h.err
}

// causeOfLoss returns why the hold cannot be trusted, or nil. A claim that is
// granted just after the connection was lost gets no event of that.
func (h *Hold) causeOfLoss() error {
	cl := h.claim
	switch over := cl.sess.Err(); {
	case over != nil:
		return over
	case !time.Now().Before(cl.sess.Deadline()):
		return ErrWindowOver
	case cl.client.opts.dropping && !cl.sess.Connected():
		return ErrDisconnected
	}
	return nil
}

// Deadline returns the end of the trust window as known now. It moves forward
// as long as the servers acknowledge; the hold ends when it is reached, unless
// late acknowledgements have moved it by the time that this is noticed.
func (h *Hold) Deadline() time.Time { return h.claim.sess.Deadline() }

// Token returns the fencing token: a number that grows from holder to holder,
// also over deletion and re-creation of the directory (it is the node's czxid,
// the ensemble-wide number of the change that created it). A resource that
// remembers the highest token it has seen and refuses smaller ones cannot be
// harmed by a holder that does not know yet that it lost. Only exclusive holds
// have one; it is 0 for readers and for semaphores.
func (h *Hold) Token() int64 {
	if !h.claim.spec.Exclusive {
		return 0
	}
	return h.claim.node.Czxid()
}

// Node returns the path of the hold's node.
func (h *Hold) Node() string { return h.claim.path() }

// Session returns the id of the session the hold belongs to.
func (h *Hold) Session() int64 { return h.claim.sess.ID() }

// Revoked is closed when a client has asked the holder to give up, perhaps
// before the grant; see inspect.Revoke. The holder finishes what it must and
// releases.
func (h *Hold) Revoked() <-chan struct{} {
	h.claim.node.WatchOnce()
	for _, part := range h.claim.partsLeft() {
		part.node.WatchOnce()
	}
	h.claim.mu.Lock()
	defer h.claim.mu.Unlock()
	return h.claim.revoked.Done(h.claim.asked)
}

// Txn carries out all the operations or none, and only while the hold's node
// exists: it writes nothing into ZooKeeper after the hold was lost. One
// request. When the node is gone, the error matches [ErrLost], or [ErrReleased]
// when the hold was released meanwhile; when the connection fails before the
// reply, [ErrUnconfirmed]. The ACL must permit reading the node. The node of a
// name is deleted only when transactions under way have ended, for the next
// owner's node looks like it ([NameSpec]); during recipe.Transactor.Release of
// such a hold, Txn fails with [ErrInvalid].
func (h *Hold) Txn(ctx context.Context, ops ...Op) ([]Result, error) {
	cl := h.claim
	if err := h.Err(); err != nil {
		return nil, opError("transaction", cl.path(), err)
	}
	var results []Result
	err := h.during(func() (err error) {
		results, err = h.txn(ctx, ops)
		return err
	})
	return results, cl.client.failure("transaction", cl.path(), err)
}

func (h *Hold) txn(ctx context.Context, ops []Op) ([]Result, error) {
	cl := h.claim
	own := append([]Op{CheckOp(cl.path(), cl.node.Version())}, cl.proof()...)
	results, err := cl.client.txn(ctx, cl.sess, append(own, ops...))
	if single, ok := err.(*TxnError); ok && single.Index == 0 && errors.Is(err, ErrBadVersion) {
		written, unknown := cl.node.Rewritten(ctx)
		if written {
			return h.txn(ctx, ops)
		}
		err = cmp.Or(unknown, err)
	}
	if err != nil {
		return nil, h.ownFailure(err, len(own))
	}
	return results[len(own):], nil
}

// ownFailure ends the hold if one of our checks in front of the caller's
// operations failed, or if the client is closed. In a failure of the caller's,
// it counts from the caller's first operation.
func (h *Hold) ownFailure(err error, own int) error {
	single, ok := err.(*TxnError)
	switch {
	case !ok && h.claim.sess.Err() != nil && !errors.Is(err, ErrUnconfirmed):
		return cmp.Or(h.Err(), err) // not carried out, for the session ended meanwhile
	case !ok:
		return err
	case single.Index >= own, !errors.Is(single, ErrNoNode) && !errors.Is(single, ErrBadVersion):
		return callersOwn(err, own) // our node is there, for all we know
	}
	h.claim.lose(ErrNodeDeleted, single.Index == 0)
	return cmp.Or(h.Err(), ErrReleased)
}

// end closes h; cl.mu is held. It reports whether h had not ended before.
func (h *Hold) end(err error) bool {
	if h.err != nil {
		return false
	}
	h.err, h.over = err, h.in.unuse()
	h.done.Close()
	h.claim.holds = slices.DeleteFunc(h.claim.holds, func(other *Hold) bool { return other == h })
	return true
}

// endAll ends every handle; cl.mu is held.
func (cl *claim) endAll(err error) []*Hold {
	ended := slices.Clone(cl.holds)
	for _, h := range ended {
		h.end(err)
	}
	return ended
}

// loss is [ErrLost] and its cause. Its text is made only when asked for:
// thousands of holds must end in time.
type loss struct{ cause error }

func (l loss) Error() string { return ErrLost.Error() + ": " + l.cause.Error() }

func (l loss) Unwrap() []error { return []error{ErrLost, l.cause} }

// heldContext is a context that ends with a hold.
type heldContext struct {
	context.Context
	parent context.Context
	of     string // the directory of the line, or the name
	hold   *Hold
	cancel context.CancelCauseFunc
}

// Value has the context itself as the innermost one that carries a hold.
func (c *heldContext) Value(key any) any {
	if key == (innermostKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err looks at the clock as [Hold.Err] does, for this hold and for those of its
// parents.
func (c *heldContext) Err() error {
	_, _ = c.hold.Err(), c.parent.Err() // which cancel the context if a window is over
	return c.Context.Err()
}

type innermostKey struct{}

// innermost returns the nearest context of ctx that carries a hold, or nil.
func innermost(ctx context.Context) *heldContext {
	held, _ := ctx.Value(innermostKey{}).(*heldContext)
	return held
}

// heldNodes are the names of the nodes of all holds that ctx carries, the
// outermost first.
func heldNodes(ctx context.Context) (nodes []string) {
	for held := innermost(ctx); held != nil; held = innermost(held.parent) {
		if name := held.hold.claim.node.Name(); !slices.Contains(nodes, name) {
			nodes = append(nodes, name)
		}
	}
	slices.Reverse(nodes)
	return nodes
}

// Context returns a context that ends when the hold or parent does;
// context.Cause says which. It carries the hold: see [HeldIn], and Under of
// inspect.Contender for the claims that are made with it. The context is kept
// until one of the two has ended: if you make many of one long hold, give each
// a parent that ends.
func (h *Hold) Context(parent context.Context) context.Context {
	cl := h.claim
	of := cl.spec.Line.Dir
	if cl.named != nil {
		of = cl.path()
	}
	ctx, cancel := context.WithCancelCause(parent)
	held := &heldContext{ctx, parent, of, h, cancel}
	h.claim.mu.Lock()
	err := h.err
	if err == nil {
		if h.contexts == nil {
			h.contexts = map[*heldContext]struct{}{}
		}
		h.contexts[held] = struct{}{}
	}
	h.claim.mu.Unlock()
	if err != nil {
		cancel(err)
		return held
	}
	context.AfterFunc(ctx, func() {
		h.claim.mu.Lock()
		defer h.claim.mu.Unlock()
		delete(h.contexts, held)
	})
	return held
}

// tellEnded ends the contexts of a hold that has ended, and informs the makers
// of the nests that ended with it.
func (h *Hold) tellEnded() {
	h.claim.mu.Lock()
	contexts, over, err := h.contexts, h.over, h.err
	h.contexts, h.over = nil, nil
	h.claim.mu.Unlock()
	for held := range contexts {
		held.cancel(err)
	}
	for _, ended := range over {
		if err == ErrReleased {
			ended()
		} else {
			go ended()
		}
	}
}

// HeldIn returns the hold that a context made by [Hold.Context] carries for
// the line in dir, or for the name, if there is one and it has not ended.
func HeldIn(ctx context.Context, c *Client, dir string) (Held, bool) {
	h, held := holdIn(ctx, c, dir, func(*Hold) bool { return true })
	if h == nil {
		return nil, false
	}
	return h, held
}

// holdIn is HeldIn for the holds that is accepts: in one directory there may be
// several lines.
func holdIn(ctx context.Context, c *Client, dir string, is func(*Hold) bool) (*Hold, bool) {
	for held := innermost(ctx); held != nil; held = innermost(held.parent) {
		if held.of == dir && held.hold.claim.client.shared == c.shared && is(held.hold) {
			return held.hold, held.hold.Err() == nil
		}
	}
	return nil, false
}
