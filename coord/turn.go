package coord

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// await returns when the turn has come: each wake-up looks again. When it
// fails, the claim is still there, unless its node or its session is gone. When
// the claim is left meanwhile, the error is [ErrReleased]. A rule that panics
// leaves no waiter behind that shares listings.
func (w *waiter) await(ctx context.Context) error {
	w.cl.keepOpen(false)
	w.share()
	defer w.unshare()
	return w.blame(w.run(ctx, w.lookAgain))
}

// beginTurn asks the rule once. If the answer is no, it returns what waits for
// the turn. A nil rule grants the turn immediately, with a listing unless the
// claim is unlisted; so does a name, which stands in no line. A contender
// before the claim that cannot be honoured ([Line]) makes it fail with
// [ErrForeign] if the listing of the join shows that contender and it is still
// there; the claim waits for one that it finds later.
func (cl *claim) beginTurn(ctx context.Context, rule Rule, try bool) (*waiter, error) {
	if cl.named == nil {
		if err := admit(cl.own()); err != nil {
			return nil, err
		}
	}
	if rule == nil || cl.named != nil {
		if cl.spec.Unlisted {
			return nil, nil
		}
		return nil, cl.list(ctx, func(names *session.Listing) bool { return slices.Contains(names.Names, cl.node.Name()) })
	}
	w := waiter{cl: cl, rule: rule}
	if !w.followOwn() {
		refusable := try || cl.view != nil && !calls.IsPatient(ctx)
		if granted, err := w.ask(ctx, refusable); granted || err != nil {
			return nil, err
		}
	}
	if try {
		return nil, ErrBusy
	}
	w.wait = wait{client: cl.client, sess: cl.sess, waker: cl.waking()}
	return &w, nil
}

// share has the waiter share listings with the others of its session, until
// unshare.
func (w *waiter) share() {
	w.cl.sess.Listings.Share(w.cl.node.Dir, session.Sharer{Place: w.cl.own().Sequence, Path: w.cl.node.Path()})
}

func (w *waiter) unshare() { w.cl.sess.Listings.Unshare(w.cl.node.Dir, w.cl.own().Sequence) }

// waiter is a claim that waits for its turn. It keeps little: one of thousands
// in one client must not keep the whole line.
type waiter struct {
	wait
	cl      *claim
	rule    Rule
	verdict *verdict // nil once nothing is left in it
}

// verdict is what the rule has said last.
type verdict struct {
	awaited []string    // the nodes to wait for; nil once a look has read them all
	ahead   []Contender // of our place, if that is near the front, or nil
}

// awaited returns the nodes to wait for.
func (w *waiter) awaited() (nodes []string) {
	if w.verdict != nil && w.verdict.awaited != nil {
		return w.verdict.awaited
	}
	for _, r := range w.read {
		nodes = append(nodes, w.cl.client.relative(r.watch.Path()))
	}
	return nodes
}

// ahead returns the contenders ahead of our place, if that is near the front,
// or nil.
func (w *waiter) ahead() []Contender {
	if w.verdict == nil {
		return nil
	}
	return w.verdict.ahead
}

// frontPlaces is the number of places at the front of a line where the rule is
// asked again, when one of the awaited goes, before anything is listed. Farther
// back it would hardly grant a turn.
const frontPlaces = 16

// followOwn has a claim that was not listed wait behind claims of this session
// that wait already, if they are frontPlaces. Other contenders may stand
// between, so these claims show only that the turn has not come.
func (w *waiter) followOwn() bool {
	cl, own := w.cl, w.cl.own()
	if cl.view != nil {
		return false
	}
	paths := cl.sess.Listings.SharersBefore(cl.node.Dir, own.Sequence, frontPlaces)
	if paths == nil {
		return false
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = path.Base(p)
	}
	ahead, _ := cl.spec.Line.parse(names, cl.client.opts.dialect)
	wait, granted := w.rule(ahead)
	if !granted {
		w.remember(ahead, wait)
	}
	return !granted
}

// ask lists the line, or takes the listing of the join, and asks the rule. The
// slice's capacity ends with its length: a rule sees nothing beyond.
//
// A claim is refused only for a foreign contender that the listing of its join
// shows and that is there now. A refusal by a later listing could come late, so
// the claim waits for a contender that it finds there.
func (w *waiter) ask(ctx context.Context, refusable bool) (granted bool, err error) {
	cl, own, old := w.cl, w.cl.own(), w.cl.view != nil
	var all *lineView
	var at int
	err = cl.list(ctx, func(names *session.Listing) (there bool) {
		all = cl.spec.Line.view(names, cl.client.opts.dialect)
		at, there = slices.BinarySearchFunc(all.line, own, byAge)
		return there
	})
	cl.view = nil
	if err != nil {
		return false, err
	}
	switch before, after := around(own, all.foreign); {
	case len(before) > 0 && !refusable:
		cl.reportForeign("a contender of another dialect or recipe came first; this claim waits for it", before[0])
		w.verdict = &verdict{awaited: []string{znode.Join(cl.spec.Line.Dir, before[0].Name)}}
		return false, nil
	case len(before) > 0 && old:
		return w.ask(ctx, refusable)
	case len(before) > 0:
		return false, refuse(before[0])
	case len(after) > 0:
		cl.reportLate(after)
	}
	ahead := all.line[:at:at]
	wait, granted := w.rule(ahead)
	if !granted {
		w.remember(ahead, wait)
	}
	return granted, nil
}

// longestOwner is how many bytes of a contender's data are shown in an error.
const longestOwner = 100

// blame names, in the error of a wait that a deadline ended, who holds or is
// waited for, as far as the watches have read it.
func (w *waiter) blame(err error) error {
	awaited, ahead := w.awaited(), w.ahead()
	if !errors.Is(err, context.DeadlineExceeded) || len(awaited) == 0 {
		return err
	}
	node := awaited[0]
	role, who := "behind", node
	if name := path.Base(node); len(ahead) > 0 && ahead[0].Name == name {
		role = "held by"
	}
	if watch := w.cl.sess.Watches.Get(session.Data, w.cl.client.full(node)); watch != nil {
		if owner := dialect.Own(watch.Data); len(owner) > 0 && len(owner) <= longestOwner {
			who = strconv.Quote(string(owner))
		}
	}
	return &WaitError{err, role + " " + who}
}

// reportLate reports the newest contender that came after the claim and cannot
// be honoured.
func (cl *claim) reportLate(after []Contender) {
	cl.reportForeign("a contender of another dialect or recipe came after this claim; the two do not exclude each other",
		after[len(after)-1])
}

// reportForeign reports a contender that cannot be honoured, unless it was the
// last to be reported.
func (cl *claim) reportForeign(what string, f Contender) {
	cl.mu.Lock()
	rare := cl.rareState()
	told := rare.foreign == f.Name
	rare.foreign = f.Name
	cl.mu.Unlock()
	if told {
		return
	}
	cl.client.opts.Log.Warn(what, "claim", cl.path(), "foreign", f.Name)
	cl.client.opts.emit(
		event.Event{
			Kind: event.Foreign, Session: cl.sess.ID(), Path: znode.Join(cl.spec.Line.Dir, f.Name), Recipe: cl.spec.Recipe,
		})
}

// remember keeps whom to wait for, and the contenders ahead if they are few:
// then they are all.
func (w *waiter) remember(ahead []Contender, wait []int) {
	w.verdict = &verdict{awaited: make([]string, 0, len(wait))}
	for _, at := range wait {
		w.verdict.awaited = append(w.verdict.awaited, znode.Join(w.cl.spec.Line.Dir, ahead[at].Name))
	}
	if len(ahead) < frontPlaces {
		w.verdict.ahead = slices.Clone(ahead)
		w.cl.node.WatchSooner()
	} else {
		w.cl.node.WatchLater() // a listing comes before the grant
	}
}

// lookAgain asks the rule again after an awaited node went away: first without
// listing, then with a shared or new listing if the rule still says no. This is
// sound because only a downgraded writer can appear ahead of our place, and a
// listing follows when a writer goes; and because a lost connection, which may
// lose events, marks every watch as stale.
func (w *waiter) lookAgain(v *View) (granted bool, err error) {
	told := false
	if !v.isStale() {
		gone, err := w.departed(v)
		if err != nil || len(gone) == 0 {
			return false, err
		}
		w.cl.keepOpen(true) // a write that opens the window travels along with a listing
		granted, told = w.askWithout(gone)
	}
	if !told {
		granted, err = w.ask(v.ctx, false)
	}
	w.cl.keepOpen(granted)
	if !granted {
		v.RecheckNow() // at the contenders to wait for now
	}
	return granted, err
}

// departed watches the contenders to wait for, in one round trip, and returns
// the ones that are gone. A contender that is watched already costs no request.
func (w *waiter) departed(v *View) (gone []string, err error) {
	if err := w.cl.goneErr(); err != nil {
		return nil, err
	}
	awaited := w.awaited()
	v.Prefetch(awaited...)
	for _, node := range awaited {
		_, err := v.watch("watch", session.Data, node)
		switch {
		case errors.Is(err, ErrNoNode):
			gone = append(gone, node)
		case err != nil:
			w.verdict = &verdict{awaited, w.ahead()} // for the error of the wait
			return nil, cmp.Or(w.cl.goneErr(), err)
		}
	}
	switch {
	case len(gone) > 0 || w.verdict == nil:
	case w.verdict.ahead == nil:
		w.verdict = nil
	default:
		w.verdict.awaited = nil
	}
	return gone, nil
}

// askWithout asks the rule without the contenders that are gone, and without a
// request: the remembered contenders may be enough for a grant. If not, the
// newest listing that waiters of this session have made decides if it grants
// the turn, or if all that the rule names are watched already: so of many
// waiters in one client, few list the line.
func (w *waiter) askWithout(gone []string) (granted, told bool) {
	if ahead, known := w.without(gone, w.ahead()); known {
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
		return w.cl.sess.Watches.Get(session.Data, znode.Join(w.cl.node.Dir, ahead[at].Name)) == nil
	}
	if !granted && slices.ContainsFunc(wait, unwatched) {
		return false, false // it may have gone
	}
	w.remember(ahead, wait)
	return granted, true
}

// aheadNewly returns the contenders ahead by the newest listing that waiters of
// this session have made, and drops those at its front that are gone. It
// returns nil where our own listing would say more: whether our node is there,
// or near the front, or which contenders cannot be honoured.
func (w *waiter) aheadNewly(gone []string) []Contender {
	cl := w.cl
	names := cl.sess.Listings.Newest(cl.node.Dir)
	if names == nil || !cl.node.Known() {
		return nil
	}
	all := cl.spec.Line.view(names, cl.client.opts.dialect)
	line := all.drop(func(c Contender) bool {
		return slices.Contains(gone, znode.Join(cl.spec.Line.Dir, c.Name)) && !cl.spec.Line.mayReturn(c)
	})
	at, there := slices.BinarySearchFunc(line, cl.own(), byAge)
	if !there || at >= frontPlaces || len(all.foreign) > 0 {
		return nil
	}
	return line[:at]
}

// without returns the contenders ahead except those that are gone. known says
// whether that list is complete: ahead is not nil, and no contender that is
// gone may stand in the line again under another name.
func (w *waiter) without(gone []string, ahead []Contender) (left []Contender, known bool) {
	for _, c := range ahead {
		switch {
		case !slices.Contains(gone, znode.Join(w.cl.spec.Line.Dir, c.Name)):
			left = append(left, c)
		case w.cl.spec.Line.mayReturn(c):
			return nil, false
		}
	}
	return left, ahead != nil
}

// list makes sure that there is a listing that shows our node: the one at
// hand, or a new one, over lost connections, while the session lasts.
func (cl *claim) list(ctx context.Context, shows func(*session.Listing) bool) (err error) {
	if cl.view != nil && shows(cl.view) {
		return nil
	}
	cl.view, err = znode.Read(ctx, cl.sess, func() (*session.Listing, error) {
		return cl.sess.Listings.Get(ctx, cl.node.Dir)
	})
	switch {
	case errors.Is(err, ErrNoNode), err == nil && !shows(cl.view):
		return cl.markGone() // the listing is not older than the create
	case err == nil:
		cl.node.Seen()
	}
	return err
}

// waking returns what wakes the one who waits for the claim's turn, also when
// the node is to be deleted.
func (cl *claim) waking() session.Waker {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.waker = session.NewWaker()
	return cl.waker
}
