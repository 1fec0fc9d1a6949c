package doublebarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// leaveGrace is how long a leaver expects the round to end at any moment. For
// so long it watches only ready, unless it is the monitor.
const leaveGrace = 100 * time.Millisecond

// leaver is a member that has finished and waits for the others. The first
// member that is still there is the monitor: it watches the others and closes
// the round. Every other leaver waits for that and for the member before it,
// and becomes the monitor when all before it are gone.
type leaver struct {
	*Member
	seen      snapshot  // ready as last read
	graceOver time.Time // when leaveGrace is over; zero before our node is marked
	before    int       // the nearest index before ours whose member may be there; -1 if none may
	next      int       // the monitor: which member to look after next
	missing   []int     // the monitor: members that went without having finished
	mark      content   // of our node
	over      round     // our round, once it is over
	results   [][]byte  // the monitor: what the members have left
}

// leave takes part in the round's end, for as long as the hold lasts, and
// returns the results if they are to be gathered.
func (m *Member) leave(ctx context.Context, mark content, gather bool) (results [][]byte, err error) {
	if err := m.hold.Err(); err != nil {
		return nil, err
	}
	l := &leaver{
		Member: m, seen: m.open, before: m.index - 1, next: m.index + 1, mark: mark, results: make([][]byte, m.Count()),
	}
	l.results[m.index] = mark.data
	for gone := range m.index { // used once we are the monitor: then all before us are gone
		l.missing = append(l.missing, gone)
	}
	inside := m.hold.Context(ctx)
	err = m.barrier.client.Wait(inside, func(v *coord.View) (over bool, err error) { return l.look(inside, v) })
	var known *IncompleteError
	if gather && l.over.Results && (err == nil || errors.As(err, &known)) {
		var failure error
		if results, failure = m.barrier.read(inside, l.over, resultsOf, m.Count()); failure != nil {
			err = failure
		}
	}
	if err == nil || errors.As(err, &known) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return results, err
	}
	return nil, cmp.Or(m.hold.Err(), err) // a loss in any case
}

// unfinished says in an error who has not finished or, with more than atOnce
// members, how many are still there, finished or not. It costs one request,
// then one for each member in one round trip, or two.
func (m *Member) unfinished(ctx context.Context) (string, error) {
	r, err := m.barrier.ready.get(ctx)
	if err != nil || !r.Open || r.Number != m.Round() {
		return "", err // it is over
	}
	if m.Count() > atOnce {
		s, err := m.barrier.Status(ctx)
		return fmt.Sprintf("%d of %d are still there", len(s.Inside), m.Count()), err
	}
	absent, err := m.barrier.absent(ctx, r)
	if err != nil || len(absent) == 0 {
		return "", err
	}
	var who []inspect.Contender
	for _, a := range absent {
		who = append(who, inspect.Contender{Node: a.Node, Owner: a.Owner})
	}
	return fmt.Sprintf("%d of %d have not finished: %s", len(absent), m.Count(), recipe.Names(who, len(who))), nil
}

// look does what the round's state calls for. It reports whether the round is
// over, and then the verdict. It watches ready before it marks our node, while
// the round cannot end: a watch set after the end would never fire, and stay.
func (l *leaver) look(ctx context.Context, v *coord.View) (over bool, err error) {
	if over, err := l.refresh(ctx, v); over || err != nil {
		return over, err
	}
	if l.graceOver.IsZero() {
		if err := l.finish(ctx); err != nil {
			return false, err
		}
		l.graceOver = time.Now().Add(leaveGrace)
	}
	if l.before >= 0 && time.Now().Before(l.graceOver) {
		v.RecheckAt(l.graceOver)
		return false, nil
	}
	l.ahead(v)
	switch data, _, err := v.Get(l.Node()); {
	case err != nil && !errors.Is(err, coord.ErrNoNode):
		return false, err
	case !parse(data).finished: // another client has overwritten the mark, as a request to give up can
		return false, l.finish(ctx) // our watch sees that, or it fails since the node is gone
	}
	if l.before >= 0 {
		return false, l.awaitBefore(v)
	}
	if wait, err := l.awaitOthers(v); wait || err != nil {
		return false, err
	}
	return l.close(ctx)
}

// refresh reads ready again if it has changed. It reports whether the round is
// over, and then the verdict. It looks for the end first, without a watch.
func (l *leaver) refresh(ctx context.Context, v *coord.View) (over bool, err error) {
	ready := l.barrier.ready
	data, stat, known := v.Peek(ready.path)
	if !known {
		if over, err := l.ended(ready.get(ctx)); over || err != nil {
			return over, err
		}
		data, stat, err = v.Get(ready.path)
	}
	if known && stat == l.seen.stat {
		return false, nil
	}
	return l.ended(snapshotOf(data, stat, err))
}

// ended takes note of ready. It reports whether the round is over, and then the
// verdict. It fails with [ErrBroken] if something has happened to ready that
// must not happen while the round is open.
func (l *leaver) ended(r snapshot, err error) (over bool, verdict error) {
	switch {
	case errors.Is(err, coord.ErrNoNode):
		return false, fmt.Errorf("%w: ready was deleted", ErrBroken)
	case errors.Is(err, coord.ErrForeign):
		return false, fmt.Errorf("%w: %w", ErrBroken, err)
	case err != nil:
		return false, err
	case r.stat.Czxid != l.open.stat.Czxid:
		return false, fmt.Errorf("%w: ready was deleted and made again", ErrBroken)
	}
	l.seen = r
	past, over := r.outcome(l.open.Number)
	l.over = past
	switch {
	case !over || len(past.Missing) == 0:
		return over, nil
	case slices.Contains(past.Missing, l.index):
		return true, fmt.Errorf("%w: round %d ended without this member", coord.ErrLost, past.Number)
	}
	return true, &IncompleteError{
		Round: past.Number, Members: l.Count(), Missing: slices.Clone(past.Missing), Reasons: maps.Clone(past.Reasons),
	}
}

// finish shows the others that the member has finished.
func (l *leaver) finish(ctx context.Context) error {
	return l.barrier.ready.repeat(ctx, l.hold.Txn, coord.SetOp(l.Node(), l.mark.encode(), -1))
}

// awaitBefore waits until the member before ours has gone. Then ready is read
// first: a member that left because the round is over is not missing, and ready
// changed before it left.
func (l *leaver) awaitBefore(v *coord.View) error {
	_, _, err := v.Children(l.node(l.before)) // it has none: the watch fires when it goes
	if errors.Is(err, coord.ErrNoNode) {
		l.before--
		v.RecheckNow()
		return nil
	}
	return err
}

// atOnce is how many members the monitor looks at in one round trip. A node
// that it reads ahead is not read again unless the node changes.
const atOnce = 128

// ahead begins to read what awaitOthers looks at.
func (l *leaver) ahead(v *coord.View) {
	for i := l.next; l.before < 0 && i < min(l.next+atOnce, l.Count()); i++ {
		v.Prefetch(l.node(i))
	}
}

// awaitOthers reports whether the monitor has to wait for a member that is
// there and has not finished. No other client can end the round while the
// monitor's node is there.
func (l *leaver) awaitOthers(v *coord.View) (wait bool, err error) {
	for ; l.next < l.Count(); l.next++ {
		if later := l.next + atOnce; later < l.Count() {
			v.Prefetch(l.node(later))
		}
		data, _, err := v.Get(l.node(l.next))
		other := parse(data)
		switch {
		case errors.Is(err, coord.ErrNoNode):
			l.missing = append(l.missing, l.next)
		case err != nil || !other.finished:
			return true, err
		}
		l.results[l.next] = other.data
	}
	return false, nil
}

// node returns the path of another member's node.
func (l *leaver) node(index int) string { return l.barrier.node(l.open.Members[index]) }

// close ends the round, unless another member has: then ready shows it. As long
// as our node is there, which the transaction checks, ready cannot be about
// a later round without telling how this one ended.
func (l *leaver) close(ctx context.Context) (closed bool, err error) {
	over := l.seen.closing(l.missing, l.barrier.reasons(ctx, l.open.round, l.missing))
	var results []coord.Op
	if slices.ContainsFunc(l.results, func(r []byte) bool { return r != nil }) {
		over.Results = true
		results = append(results, coord.CreateOp(l.barrier.vector(over.round, resultsOf), encodeVector(l.results)))
	}
	err = l.barrier.ready.write(ctx, l.hold.Txn, l.seen, over, results...)
	switch {
	case err == nil:
		return l.ended(snapshot{over, l.seen.stat}, nil)
	case errors.Is(err, coord.ErrBadVersion), errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrLost):
		return false, nil
	case errors.Is(err, coord.ErrNodeExists):
		return false, fmt.Errorf("%w: another client made a node of this name: %w", ErrBroken, err)
	}
	return false, err
}
