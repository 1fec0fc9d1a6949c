package doublebarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Enter waits until n members are there and returns when the round has begun
// with this one among them: all were there at one instant. If its node is
// deleted or its session ends before that, it starts again.
//
// It fails with [ErrLate] when a round is under way without the caller, and
// with [coord.ErrDisagree] when the barrier is used with another n. Where there
// is no barrier yet, but contenders of another recipe stand, it fails with
// [coord.ErrForeign]. When ctx ends first, it returns immediately, and after a
// deadline it says how many have come. Whenever it returns an error, nothing is
// left behind: a node that could not be deleted yet is deleted in the
// background. A member that gives up at the very moment at which the round
// begins is missing in it.
func (b *Barrier) Enter(ctx context.Context) (*Member, error) { return b.EnterWith(ctx, nil) }

// EnterWith is [Barrier.Enter] of a member that brings data, such as the
// address that it listens on: [Member.Data] of every member has the data of
// all. Let all members of a round bring some, or none: they are gathered if the
// member that completes the round brings some. It costs that member a request
// for each other one, 128 in a round trip, and each member one request. More
// than [Barrier.MaxShare] bytes fail with [coord.ErrTooLarge], and nothing is
// written.
func (b *Barrier) EnterWith(ctx context.Context, data []byte) (*Member, error) {
	if err := b.admitShare(data); err != nil {
		return nil, recipe.Failure(b.client, "enter", b.path, err)
	}
	for {
		m, err := b.enter(ctx, data)
		if err == nil {
			return m, nil
		}
		lost := errors.Is(err, coord.ErrLost)
		if lost && ctx.Err() == nil {
			continue
		}
		if lost {
			err = recipe.Ended(ctx, err)
		}
		return nil, recipe.Failure(b.client, "enter", b.path, err)
	}
}

func (b *Barrier) enter(ctx context.Context, data []byte) (*Member, error) {
	if err := b.admit(ctx); err != nil {
		return nil, err
	}
	spec := b.spec
	if data != nil {
		spec.Data = content{owner: b.client.Info().Identity, data: data}.encode()
	}
	hold, names, err := recipe.Join(ctx, b.client, &spec)
	if err != nil {
		return nil, err
	}
	var there *listing
	if names != nil {
		there = b.sort(names)
	}
	m := &Member{
		Held: hold, barrier: b, hold: hold, self: b.order([]string{path.Base(hold.Node())})[0], brought: data,
		leaving: make(chan struct{}, 1),
	}
	inside := hold.Context(ctx)
	err = b.client.Wait(inside, func(v *coord.View) (bool, error) {
		listed := there
		there = nil // which will do for one look
		return m.look(inside, v, listed)
	})
	if err == nil && m.open.Data {
		m.data, err = b.read(inside, m.open.round, dataOf, m.Count())
	}
	if err != nil {
		ending, cancel := recipe.Grace(ctx) // begun here, so that it covers came too
		defer cancel()
		err = recipe.InVain(ctx, b.client, cmp.Or(hold.Err(), err), b.came)
		_ = hold.Release(ending) // a node that is not deleted yet is deleted in the background
		if errors.Is(err, coord.ErrLost) {
			// The servers may keep its session: no client may count twice.
			_ = recipe.Retry(ctx, b.client, func(ctx context.Context) error { return b.client.Delete(ctx, hold.Node(), -1) })
		}
		return nil, err
	}
	return m, nil
}

// came says in an error how many members have come, or are still in the round
// that is under way: two requests.
func (b *Barrier) came(ctx context.Context) (string, error) {
	s, err := b.Status(ctx)
	if s.Open && len(s.Inside) > 0 {
		return fmt.Sprintf("round %d is under way, with %d of its members still there", s.Round, len(s.Inside)), err
	}
	return fmt.Sprintf("%d of %d have come", len(s.Waiting), s.Size), err
}

// admit rejects, before anything is written, a caller for whom the barrier has
// no place. It changes the record's number of members if nobody is there.
func (b *Barrier) admit(ctx context.Context) error {
	var line []coord.Contender
	var readyWas int64          // when the line was listed: its Mzxid
	client := b.client.Synced() // the server may lag behind
	return b.client.Wait(ctx, func(v *coord.View) (admitted bool, err error) {
		_, _, err = v.Get(b.ready.path)
		if errors.Is(err, coord.ErrNoNode) {
			if err = b.refuse(ctx, client); err == nil {
				err = b.ready.make(ctx, b.size)
			}
		}
		if err != nil {
			return false, err
		}
		r, err := b.ready.watchOrMake(v, b.size)
		agreed, listed := r.Size == b.size, r.stat.Mzxid == readyWas // since the record is what it is
		switch {
		case err != nil || agreed && (!r.Open || b.wait || listed && !r.alive(line)):
			return true, err
		case listed && agreed:
			return false, errLate(r)
		case listed && len(line) > 0:
			return false, b.errSize(r)
		case listed:
			err = b.ready.write(ctx, b.client.Txn, r, r.resized(b.size))
			if errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode) {
				err = nil // another client was faster
			}
		default:
			var there *listing
			if there, err = b.list(ctx, client); err == nil {
				line, readyWas = there.line, r.stat.Mzxid
			}
		}
		v.RecheckNow()
		return false, err
	})
}

// refuse returns an error if contenders of another recipe stand at the path,
// and there is no barrier: none is made there.
func (b *Barrier) refuse(ctx context.Context, client *coord.Client) error {
	names, err := client.Children(ctx, b.path)
	if errors.Is(err, coord.ErrNoNode) || slices.Contains(names, ready) {
		return nil
	}
	for _, c := range inspect.Among(names) {
		if c.Kind != Kind {
			return fmt.Errorf("%w: %s stands at the path; give the barrier a path of its own", coord.ErrForeign, c.Name)
		}
	}
	return err
}

func errLate(r snapshot) error { return fmt.Errorf("%w: round %d", ErrLate, r.Number) }

func (b *Barrier) errSize(r snapshot) error {
	return fmt.Errorf("%w: the number of members is %d, not %d", coord.ErrDisagree, r.Size, b.size)
}

// look reports whether a round with the member has begun, and begins one if it
// can. The member tries only if enough nodes have been made for the next round
// that its arrival can have completed it. Of n members, the youngest tries; of
// the least number, the youngest tries after the last call. The listing there,
// if not nil, was made along with the create: it has all members that are no
// younger, which is enough to begin a round, but not to see that the open round
// has crashed. ctx ends with the hold.
func (m *Member) look(ctx context.Context, v *coord.View, there *listing) (begun bool, err error) {
	b := m.barrier
	r, err := b.ready.watchOrMake(v, b.size)
	if err != nil {
		return false, err
	}
	if index := slices.Index(r.Members, m.self.Name); r.Open && index >= 0 {
		m.open, m.index = r, index
		return true, m.hold.Err()
	}
	if m.callsAfter != r.Number {
		m.callsAfter, m.lastCall = r.Number, time.Time{} // each round has its own
	}
	switch {
	case r.Size != b.size:
		return false, b.errSize(r)
	case m.self.Sequence < r.Next:
		// A round passed our node over, so it was gone by then.
		return false, fmt.Errorf("%w: round %d began without it: %w", coord.ErrLost, r.Number, coord.ErrNodeDeleted)
	case !r.Open && !m.calls(v, r):
		return false, nil
	}
	if there == nil || r.Open {
		there, err = b.list(ctx, b.client)
	}
	switch {
	case err != nil:
		return false, err
	case !r.Open || !r.alive(there.line):
		if _, enough := r.opening(there.line, b.least); r.Open && enough {
			m.callLast(v) // only the first in line sees that the round has crashed
		}
		err = m.begin(ctx, r, there)
	case !b.wait:
		return false, errLate(r)
	default:
		err = m.queue(v, there.line)
	}
	gone := errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrNodeExists)
	if gone && !errors.Is(err, coord.ErrLost) {
		v.RecheckNow() // a node of the list has gone: look again
		return false, nil
	}
	return false, err
}

// calls reports whether the member may begin a round: n members can be there,
// or the least number can and the last call is over. The last call begins when
// the member first sees that the least number can be there.
func (m *Member) calls(v *coord.View, r snapshot) bool {
	before := int(m.self.Sequence - r.Next)
	if before < m.barrier.least-1 {
		return false
	}
	return m.callLast(v) || before >= r.Size-1
}

// callLast begins the last call, unless it has begun, and reports whether it is
// over. The look is called again when it is.
func (m *Member) callLast(v *coord.View) (over bool) {
	if m.lastCall.IsZero() {
		m.lastCall = time.Now().Add(m.barrier.lastCall)
	}
	if over = m.called(); !over {
		v.RecheckAt(m.lastCall)
	}
	return over
}

// called reports whether the last call is over.
func (m *Member) called() bool { return !m.lastCall.IsZero() && !time.Now().Before(m.lastCall) }

// queue waits, while a round is open, for the node before ours in line. So only
// the first in line is woken when members of the round go. When all of them
// have crashed, it begins the next round, if it can.
func (m *Member) queue(v *coord.View, line []coord.Contender) error {
	before := line[0].Name // a member of the open round, if no other is there
	for _, c := range line {
		if c.Sequence < m.self.Sequence {
			before = c.Name
		}
	}
	// It has no children, so this watch fires when it goes, not when it is
	// written.
	_, _, err := v.Children(m.barrier.node(before))
	return err
}

// begin opens the next round if enough members are listed. If one of them has
// gone by then, it fails with [coord.ErrNoNode]: there may be enough others. If
// ready has changed, it does nothing: the watch on ready fires.
func (m *Member) begin(ctx context.Context, r snapshot, there *listing) error {
	b, least := m.barrier, r.Size
	if m.called() {
		least = b.least
	}
	next, enough := r.opening(there.line, least)
	if !enough {
		return nil
	}
	var more []coord.Op
	for _, name := range next.Members {
		if name != m.self.Name { // which the hold's transaction checks
			more = append(more, coord.CheckOp(b.node(name), -1))
		}
	}
	more = append(more, b.deleted(there, next.Past)...)
	if m.brought != nil {
		data, err := b.gather(ctx, next.Members)
		if err != nil {
			return err
		}
		next.Data = true
		more = append(more, coord.CreateOp(b.vector(next.round, dataOf), encodeVector(data)))
	}
	err := b.ready.write(ctx, m.hold.Txn, r, next, more...)
	if errors.Is(err, coord.ErrBadVersion) {
		return nil
	}
	if err == nil {
		b.tidy(ctx, there, next.Past)
	}
	return err
}
