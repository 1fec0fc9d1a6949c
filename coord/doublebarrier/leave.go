package doublebarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
)

// done is what a member's data end with once it has finished.
const done = "\ndone"

// leaving is a member that has finished and waits for the others. The first of
// the round that is still there looks after them and closes the round: the
// monitor. Everybody else waits for that, and for the one before it in the
// round, so as to be the next monitor when all before it are gone.
type leaving struct {
	*Member
	marked  <-chan struct{} // closed when the own node is not as the mark left it
	before  int             // the nearest before the own index that may be there; -1 if none is
	next    int             // the monitor: whom to look after next; 0 before it begins
	missing []int           // the monitor: who was gone before having finished
}

func (m *Member) leave(ctx context.Context) error {
	if err := m.hold.Err(); err != nil {
		return err
	}
	err := m.finish(m.hold.Context(ctx))
	var known *IncompleteError
	if err == nil || errors.As(err, &known) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return cmp.Or(m.hold.Err(), err) // a loss, whatever came of it
}

// finish takes part in the round's end. ctx ends with the hold. It sees to the
// watch on ready before the mark is made, while the round cannot end unless the
// own node is gone: a watch that is set after the end has nothing to tell, and
// stays.
func (m *Member) finish(ctx context.Context) error {
	l := &leaving{Member: m, before: m.index - 1}
	r, over, err := m.refresh(ctx, m.open)
	if over || err != nil {
		return err
	}
	if err := l.mark(ctx); err != nil {
		return err
	}
	for {
		if r, over, err = m.refresh(ctx, r); over || err != nil {
			return err
		}
		if err := l.keepMark(ctx); err != nil {
			return err
		}
		wake, err := l.attend(ctx, r)
		if err != nil {
			return err
		}
		if wake == nil {
			closed, err := l.close(ctx, r)
			if err != nil {
				return err
			}
			if closed {
				return m.verdict(round{Number: r.Number, Missing: l.missing})
			}
		}
		if err := l.sleep(ctx, r, wake); err != nil {
			return err
		}
	}
}

// refresh reads ready again if it has changed. It tells whether the round is
// over, and then the verdict. It looks for the end first, without a watch.
func (m *Member) refresh(ctx context.Context, r reading) (_ reading, over bool, err error) {
	if !r.hasChanged() {
		return r, false, nil
	}
	if r, over, err = m.judge(m.barrier.get(ctx)); over || err != nil {
		return r, over, err
	}
	return m.judge(m.barrier.watch(ctx))
}

// judge tells whether the round is over by what was read, and then the verdict.
func (m *Member) judge(r reading, err error) (_ reading, over bool, _ error) {
	if err := m.tampered(r, err); err != nil {
		return r, false, err
	}
	past, over := r.outcome(m.open.Number)
	if !over {
		return r, false, nil
	}
	return r, true, m.verdict(past)
}

// mark tells the others that the member has finished.
func (l *leaving) mark(ctx context.Context) error {
	data := []byte(l.barrier.client.Identity() + done)
	return txn(ctx, l.barrier.client, l.hold, coord.SetOp(l.Node(), data, -1))
}

func isMarked(data []byte) bool { return strings.HasSuffix(string(data), done) }

// keepMark sees to it that the mark is there for the monitor to see, also when
// somebody writes into the node, as [coord.Client.Revoke] does.
func (l *leaving) keepMark(ctx context.Context) error {
	if l.marked != nil {
		select {
		case <-l.marked:
		default:
			return nil
		}
	}
	for {
		data, _, changed, err := l.barrier.client.Watch(ctx, l.Node())
		switch {
		case err == nil && isMarked(data):
			l.marked = changed
			return nil
		case err != nil && !errors.Is(err, coord.ErrNoNode):
			return err
		}
		if err := l.mark(ctx); err != nil { // a loss, when the node is gone
			return err
		}
	}
}

// sleep waits until there is something to do.
func (l *leaving) sleep(ctx context.Context, r reading, wake <-chan struct{}) error {
	select {
	case <-wake:
	case <-l.marked:
	case <-r.changed:
	case <-ctx.Done():
		return coord.Ended(ctx)
	}
	return nil
}

// tampered turns what must not happen to ready while a round is open into
// [ErrBroken].
func (m *Member) tampered(r reading, err error) error {
	switch {
	case errors.Is(err, coord.ErrNoNode):
		return fmt.Errorf("%w: ready was deleted", ErrBroken)
	case errors.Is(err, coord.ErrForeign):
		return fmt.Errorf("%w: %w", ErrBroken, err)
	case err == nil && r.stat.Czxid != m.open.stat.Czxid:
		return fmt.Errorf("%w: ready was deleted and made again", ErrBroken)
	}
	return err
}

// verdict is what everybody gets to know.
func (m *Member) verdict(r round) error {
	if slices.Contains(r.Missing, m.index) {
		return fmt.Errorf("%w: round %d ended without this member", coord.ErrLost, r.Number)
	}
	if len(r.Missing) > 0 {
		return &IncompleteError{Round: r.Number, Members: m.Count(), Missing: slices.Clone(r.Missing)}
	}
	return nil
}

// attend returns what to wait for, or nil when all others have finished or are
// gone, and it is this member's part to close the round.
func (l *leaving) attend(ctx context.Context, r reading) (wake <-chan struct{}, err error) {
	for ; l.before >= 0; l.before-- {
		wake, err := l.barrier.awaitGone(ctx, l.open.Members[l.before])
		switch {
		case !errors.Is(err, coord.ErrNoNode):
			return wake, err
		case r.hasChanged():
			return r.changed, nil
		}
	}
	if l.next == 0 {
		for gone := range l.index {
			l.missing = append(l.missing, gone)
		}
		l.next = l.index + 1
	}
	for l.next < l.Count() {
		for _, other := range l.seeNext(ctx, r) {
			switch {
			case errors.Is(other.err, coord.ErrNoNode):
				l.missing = append(l.missing, l.next)
			case other.err != nil || !other.finished:
				return other.wake, other.err
			}
			l.next++
		}
	}
	return nil, nil
}

// sight is what is seen of another member.
type sight struct {
	finished bool
	wake     <-chan struct{} // closed when there is something else to see
	err      error
}

// atOnce is how many members the monitor looks at in one round trip. What it
// sees before it is needed is not asked for again unless it changes.
const atOnce = 32

// seeNext sees the next few whom the monitor looks after.
func (l *leaving) seeNext(ctx context.Context, r reading) []sight {
	others := make([]sight, min(atOnce, l.Count()-l.next))
	var looking sync.WaitGroup
	for i := range others {
		looking.Go(func() { others[i] = l.see(ctx, r, l.next+i) })
	}
	looking.Wait()
	return others
}

// see reads and watches another member. One that is gone because the round is
// over is not missing: then ready has changed before, and that is what to look
// at. The same goes for the one before.
func (l *leaving) see(ctx context.Context, r reading, index int) sight {
	data, _, wake, err := l.barrier.client.Watch(ctx, l.barrier.node(l.open.Members[index]))
	if errors.Is(err, coord.ErrNoNode) && r.hasChanged() {
		return sight{wake: r.changed}
	}
	return sight{isMarked(data), wake, err}
}

// close ends the round, unless somebody else has: then it tells so. As long as
// the own node is there, which the transaction checks, ready cannot be about a
// later round without telling how this one ended.
func (l *leaving) close(ctx context.Context, r reading) (closed bool, err error) {
	end := coord.SetOp(l.barrier.ready, encode(r.closing(l.missing)), r.stat.Version)
	err = txn(ctx, l.barrier.client, l.hold, end)
	if errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrLost) {
		return false, nil
	}
	return err == nil, err
}
