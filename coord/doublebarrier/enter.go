package doublebarrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// Enter waits until n members are there and returns when the round has begun
// with this one among them: then all n were there in one instant. When the own
// node is deleted or the session ends before that, it begins anew.
//
// It fails with [ErrLate] when a round is under way without the caller, and
// with [ErrSize] when the barrier is used with another n. When ctx ends first,
// it returns at once. Whenever it returns an error, nothing is left behind: a
// node that could not be deleted yet is deleted in the background. A member
// that gives up in the very moment in which the round begins is missing in it.
func (b *Barrier) Enter(ctx context.Context) (*Member, error) {
	for {
		m, err := b.enter(ctx)
		if err == nil {
			return m, nil
		}
		lost := errors.Is(err, coord.ErrLost)
		if lost && ctx.Err() == nil {
			continue
		}
		if lost {
			err = fmt.Errorf("%w (%w)", coord.Ended(ctx), err)
		}
		return nil, b.client.Failure("enter", b.path, err)
	}
}

func (b *Barrier) enter(ctx context.Context) (*Member, error) {
	if err := b.admit(ctx); err != nil {
		return nil, err
	}
	hold, err := b.client.Acquire(ctx, b.spec, nil)
	if err != nil {
		return nil, err
	}
	m := &Member{barrier: b, hold: hold, self: b.order([]string{path.Base(hold.Node())})[0], leaving: make(chan struct{}, 1)}
	if err := m.await(hold.Context(ctx)); err != nil {
		err = cmp.Or(hold.Err(), err)
		withdraw(ctx, hold)
		if errors.Is(err, coord.ErrLost) {
			// The servers may keep its session: no client may count twice.
			_ = b.client.Break(ctx, hold.Node())
		}
		return nil, err
	}
	return m, nil
}

// admit rejects, before anything is written, a caller for whom the barrier has
// no place. It sets another number of members where there are none.
func (b *Barrier) admit(ctx context.Context) error {
	for flushed := false; ; {
		r, err := b.ready.watchOrMake(ctx, b.size)
		agreed := r.Size == b.size
		if err != nil || agreed && (!r.Open || b.wait) {
			return err
		}
		line, err := b.list(ctx)
		switch {
		case err != nil || agreed && !r.alive(line):
			return err
		case r.hasChanged(): // the list may be newer
		case !flushed: // the server may lag behind
			err = b.client.Flush(ctx)
			flushed = true
		case agreed:
			return errLate(r)
		case len(line) > 0:
			return b.errSize(r)
		default:
			err = b.ready.write(ctx, b.client, r, r.resized(b.size))
			if errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode) {
				err = nil // another client was faster
			}
		}
		if err != nil {
			return err
		}
	}
}

func errLate(r snapshot) error { return fmt.Errorf("%w: round %d", ErrLate, r.Number) }

func (b *Barrier) errSize(r snapshot) error {
	return fmt.Errorf("%w: %d, not %d", ErrSize, r.Size, b.size)
}

// await waits for the round that begins with the member. ctx ends with the
// hold.
func (m *Member) await(ctx context.Context) error {
	b := m.barrier
	return b.client.Wait(ctx, func(v *coord.View) (begun bool, err error) {
		r, err := b.ready.watchOrMake(ctx, b.size)
		if err != nil {
			return false, err
		}
		v.Until(r.changed)
		if index := slices.Index(r.Members, m.self.Name); r.Open && index >= 0 {
			m.open, m.index = r, index
			return true, m.hold.Err()
		}
		switch {
		case r.Size != b.size:
			return false, b.errSize(r)
		case m.self.Sequence < r.Next:
			// A round passed the own node over, so it was gone by then.
			return false, fmt.Errorf("%w: round %d began without it: %w", coord.ErrLost, r.Number, coord.ErrNodeDeleted)
		case r.Open:
			return false, m.queue(ctx, v, r)
		}
		return false, m.complete(ctx, r)
	})
}

// queue waits, while a round is open, for the node before the own in line. So
// only the first in line hears when members of the round go, and finds out when
// all of them have crashed: then it begins the next round, if it can.
func (m *Member) queue(ctx context.Context, v *coord.View, r snapshot) error {
	for {
		line, err := m.barrier.list(ctx)
		switch {
		case err != nil:
			return err
		case !r.alive(line):
			return m.begin(ctx, r, line)
		case !m.barrier.wait:
			return errLate(r)
		}
		before := line[0].Name // a member of the open round, if no other is there
		for _, c := range line {
			if c.Sequence < m.self.Sequence {
				before = c.Name
			}
		}
		// It has no children: only its end is heard, not what is written into it.
		if _, _, err = v.Children(m.barrier.node(before)); !errors.Is(err, coord.ErrNoNode) {
			return err
		}
	}
}

// complete begins the next round if this member's arrival can have completed
// it: at least so many nodes have been made for it. Earlier members need not
// look: if n are there now, one of them arrived when there were n.
func (m *Member) complete(ctx context.Context, r snapshot) error {
	if int(m.self.Sequence-r.Next) < r.Size-1 {
		return nil
	}
	stat, _, err := m.barrier.client.Exists(ctx, m.barrier.path)
	if err != nil || int(stat.Children)-1 < r.Size { // ready is a child, too
		return err
	}
	line, err := m.barrier.list(ctx)
	if err != nil {
		return err
	}
	return m.begin(ctx, r, line)
}

// begin opens the next round if enough members are there, and all of them still
// are when it begins. When one has gone meanwhile, there may be enough others.
// When ready has changed, its watch tells.
func (m *Member) begin(ctx context.Context, r snapshot, line []coord.Contender) error {
	for !r.hasChanged() {
		next, enough := r.opening(line)
		if !enough {
			return nil
		}
		var roster []coord.Op
		for _, name := range next.Members {
			if name != m.self.Name { // which the hold's transaction checks
				roster = append(roster, coord.CheckOp(m.barrier.node(name), -1))
			}
		}
		err := m.barrier.ready.write(ctx, m.hold, r, next, roster...)
		switch {
		case errors.Is(err, coord.ErrBadVersion):
			return nil
		case !errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrLost):
			return err
		}
		if line, err = m.barrier.list(ctx); err != nil {
			return err
		}
	}
	return nil
}

// withdraw deletes the own node. It takes at most 50 ms when ctx has ended.
func withdraw(ctx context.Context, h *coord.Hold) {
	ctx, cancel := coord.Grace(ctx)
	defer cancel()
	_ = h.Release(ctx) // what is not deleted yet is deleted in the background
}
