package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Turn waits until rule grants the claim its turn. When it returns an error,
// the claim is still there, unless its node or its session is gone: leave it,
// or wait again. When the claim is left meanwhile, the error is [ErrReleased].
// Each wake-up looks again before anything is granted, and so does a Turn that
// is asked for some time after the join: one request, unless the claim watches
// its node already. A grant needs an open trust window. A claim of a name
// stands in no line: it is granted at once.
func (cl *Claim) Turn(ctx context.Context, rule Rule) (*Hold, error) {
	h, err := cl.turn(ctx, rule, false)
	return h, cl.client.Failure("wait", cl.shape.Line.Dir, err)
}

func (cl *Claim) turn(ctx context.Context, rule Rule, try bool) (*Hold, error) {
	switch {
	case cl.shape.name != "":
		return cl.grant(ctx)
	case rule == nil && cl.view == nil:
		if _, err := admit(cl.own(), nil); err != nil {
			return nil, err
		}
		return cl.grant(ctx)
	}
	w := waiter{cl: cl, rule: rule}
	var granted bool
	var err error
	if !w.followOwn() {
		granted, err = w.ask(ctx)
	}
	if err == nil && !granted {
		if try {
			return nil, ErrBusy
		}
		own := session.Sharer{Place: cl.own().Sequence, Name: cl.node.Name()}
		defer cl.sess.ShareListings(cl.node.Spec.Dir, own)()
		waiting := w // which is on the heap from here on
		err = cl.client.waitIn(ctx, cl.sess, waiting.look)
	}
	if err != nil {
		return nil, err
	}
	return cl.grant(ctx)
}

// waiter is a claim that waits for its turn. It keeps little: one of thousands
// in one client must not keep the whole line.
type waiter struct {
	cl      *Claim
	rule    Rule
	awaited []string    // the nodes to wait for
	ahead   []Contender // of the own place, if that is near the front, or nil
}

// near is the number of places at the front of a line where the rule is asked
// again, when one of the awaited goes, before anything is listed. Farther back
// it would hardly grant a turn.
const near = 16

// followOwn has a claim that was not listed wait behind those of this session
// that wait already, if they are many. Others may stand there as well, so that
// these tell only that the turn has not come.
func (w *waiter) followOwn() bool {
	cl, own := w.cl, w.cl.own()
	if _, err := admit(own, nil); err != nil || cl.view != nil || w.rule == nil {
		return false
	}
	names := cl.sess.SharersBefore(cl.node.Spec.Dir, own.Sequence, near)
	if names == nil {
		return false
	}
	ahead, _ := cl.shape.Line.parse(names, cl.client.opts.dialect)
	wait, granted := w.rule(ahead)
	if !granted {
		w.remember(ahead, wait, false)
	}
	return !granted
}

// ask lists the line, or takes the listing of the join, and asks the rule. A
// rule that looks beyond the end of what it is given finds nothing there.
func (w *waiter) ask(ctx context.Context) (granted bool, err error) {
	cl, own := w.cl, w.cl.own()
	if _, err := admit(own, nil); err != nil {
		return false, err
	}
	var all *lineView
	var at int
	err = cl.list(ctx, func(names *session.Listing) (there bool) {
		all = cl.shape.Line.view(names, cl.client.opts.dialect)
		at, there = slices.BinarySearchFunc(all.line, own, byAge)
		return there
	})
	cl.view = nil
	if err != nil {
		return false, err
	}
	late, err := admit(own, all.foreign)
	if late != nil {
		cl.client.opts.Log.Warn("a contender of another dialect or recipe came after this claim; the two do not exclude each other",
			"claim", cl.Node(), "foreign", late.Name)
		cl.client.emit(Event{Kind: ClaimForeign, Session: cl.sess.ID(), Path: cl.shape.Line.Dir + "/" + late.Name})
	}
	if err != nil || w.rule == nil {
		return err == nil, err
	}
	ahead := all.line[:at:at]
	wait, granted := w.rule(ahead)
	if !granted {
		w.remember(ahead, wait, true)
	}
	return granted, nil
}

// remember keeps those to wait for, and those ahead if these are all and few.
func (w *waiter) remember(ahead []Contender, wait []int, all bool) {
	w.awaited, w.ahead = make([]string, 0, len(wait)), nil
	for _, at := range wait {
		w.awaited = append(w.awaited, znode.Join(w.cl.shape.Line.Dir, ahead[at].Name))
	}
	if all && len(ahead) < near {
		w.ahead = slices.Clone(ahead)
	} else {
		w.cl.node.WatchLater() // a listing comes before the grant
	}
}

// look asks the rule again when one of those that it named has gone: without
// those that are known to be gone, and by a listing, that of another waiter or
// a new one, if it still says no or if only that can tell. Sound, because
// nobody can appear ahead of the own place but a downgraded writer, whose going
// is followed by a listing, and because a lost connection, after which events
// may have been missed, reports every watch as stale.
func (w *waiter) look(v *View) (granted bool, err error) {
	v.Until(w.cl.leaving())
	for !granted && err == nil {
		told := false
		if !v.isStale() {
			gone, err := w.departed(v)
			if err != nil || len(gone) == 0 {
				return false, err
			}
			granted, told = w.askWithout(gone)
		}
		v.before, v.last = nil, nil
		if !told {
			granted, err = w.ask(v.ctx)
		}
	}
	return granted, err
}

// departed watches those to wait for, in one round trip, and returns those that
// are gone. What is watched already costs nothing.
func (w *waiter) departed(v *View) (gone []string, err error) {
	if err := w.cl.why(); err != nil {
		return nil, err
	}
	v.Ahead(w.awaited...)
	v.read = v.read[:0]
	for _, node := range w.awaited {
		_, err := v.watch("watch", session.Data, node)
		switch {
		case errors.Is(err, ErrNoNode):
			gone = append(gone, node)
		case err != nil:
			return nil, cmp.Or(w.cl.why(), err)
		}
	}
	return gone, nil
}

// askWithout asks the rule without those that are gone, by what is known
// without a request: those remembered may be enough for a grant. If not, the
// newest listing that waiters of this session have made tells the outcome if it
// grants the turn, or if all that the rule names are watched already: so of
// many waiters in one client, few list the line.
func (w *waiter) askWithout(gone []string) (granted, told bool) {
	if ahead, known := w.without(gone, w.ahead); known {
		if _, granted = w.rule(ahead); granted {
			return true, true
		}
	}
	ahead, known := w.without(gone, w.aheadNewly(gone))
	if !known {
		return false, false
	}
	wait, granted := w.rule(ahead)
	unwatched := func(at int) bool {
		return w.cl.sess.Watching(session.Data, znode.Join(w.cl.node.Spec.Dir, ahead[at].Name)) == nil
	}
	if !granted && slices.ContainsFunc(wait, unwatched) {
		return false, false // it may have gone
	}
	w.remember(ahead, wait, true)
	return granted, true
}

// aheadNewly returns those ahead by the newest listing that waiters of this
// session have made, or nil if that tells less than one's own would: of the own
// node, or of contenders that cannot be honoured. Those at its front that are
// gone are left out from now on.
func (w *waiter) aheadNewly(gone []string) []Contender {
	cl := w.cl
	names := cl.sess.NewestListing(cl.node.Spec.Dir)
	if names == nil || !cl.node.Known() {
		return nil
	}
	all := cl.shape.Line.view(names, cl.client.opts.dialect)
	line := all.drop(func(c Contender) bool {
		return slices.Contains(gone, znode.Join(cl.shape.Line.Dir, c.Name)) && !cl.shape.Line.mayReturn(c)
	})
	at, there := slices.BinarySearchFunc(line, cl.own(), byAge)
	if !there || at >= near || len(all.foreign) > 0 {
		return nil
	}
	return line[:at]
}

// without takes those that are gone out of those ahead. It reports whether it
// is known who is left: those ahead are not nil, and none that is gone may have
// returned.
func (w *waiter) without(gone []string, ahead []Contender) (left []Contender, known bool) {
	for _, c := range ahead {
		switch {
		case !slices.Contains(gone, znode.Join(w.cl.shape.Line.Dir, c.Name)):
			left = append(left, c)
		case w.cl.shape.Line.mayReturn(c):
			return nil, false
		}
	}
	return left, ahead != nil
}

// list makes sure that there is a listing that shows the own node: the one at
// hand, or a new one, over lost connections, while the session lasts.
func (cl *Claim) list(ctx context.Context, shows func(*session.Listing) bool) (err error) {
	if cl.view != nil && shows(cl.view) {
		return nil
	}
	cl.view, err = znode.Read(ctx, cl.sess, func() (*session.Listing, error) {
		return cl.sess.List(ctx, cl.node.Spec.Dir)
	})
	switch {
	case errors.Is(err, ErrNoNode), err == nil && !shows(cl.view):
		return cl.missed() // the listing is not older than the create
	case err == nil:
		cl.node.Seen()
	}
	return err
}

// grant makes the hold, once the trust window is open and the node known to be
// there.
func (cl *Claim) grant(ctx context.Context) (*Hold, error) {
	for known := false; !known; known = cl.node.Known() {
		switch err := cl.node.Look(ctx); {
		case errors.Is(err, ErrNoNode):
			return nil, cl.missed()
		case err != nil:
			return nil, err
		}
		if err := cl.sess.Vouch(ctx); err != nil {
			return nil, err
		}
	}
	cl.mu.Lock()
	if cl.gone != nil || cl.removal != nil {
		cl.mu.Unlock()
		return nil, cl.why()
	}
	h := newHold(cl, nil)
	cl.mu.Unlock()
	cl.emit(ClaimGranted, cl.joined, nil)
	if err := h.Err(); err != nil {
		return nil, err
	}
	return h, nil
}

// missed notes that the node is not there any more and tells why: the claim may
// have been left meanwhile.
func (cl *Claim) missed() error {
	cl.lose(ErrNodeDeleted, true)
	return cmp.Or(cl.why(), ErrReleased)
}

// why tells why the claim cannot be granted any more, or nil: its node is gone,
// or about to be deleted.
func (cl *Claim) why() error {
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
