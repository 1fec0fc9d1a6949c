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
// node that could not be deleted yet is deleted in the background. A member that
// gives up in the very moment in which the round begins is missing in it.
func (b *Barrier) Enter(ctx context.Context) (*Member, error) {
	for {
		m, err := b.enter(ctx)
		if err == nil {
			return m, nil
		}
		lost := errors.Is(err, coord.ErrLost)
		if lost && ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", coord.Ended(ctx), err)
		}
		if !lost || ctx.Err() != nil {
			return nil, b.client.Failure("enter", b.path, err)
		}
	}
}

func (b *Barrier) enter(ctx context.Context) (*Member, error) {
	if err := b.admit(ctx); err != nil {
		return nil, err
	}
	hold, err := b.client.Acquire(ctx, b.spec, coord.Alone)
	if err != nil {
		return nil, err
	}
	e := &entrant{Barrier: b, hold: hold, self: b.order([]string{path.Base(hold.Node())})[0]}
	m, err := e.await(ctx)
	if err != nil {
		withdraw(ctx, hold)
		if errors.Is(err, coord.ErrLost) {
			// Its session may go on at the servers, and nobody may count twice.
			_ = b.client.Break(ctx, hold.Node())
		}
		return nil, err
	}
	return m, nil
}

// admit refuses before anything is written whom the barrier has no place for.
func (b *Barrier) admit(ctx context.Context) error {
	for flushed := false; ; {
		r, err := b.look(ctx)
		if err != nil || r.Size == b.size && (!r.Open || b.wait) {
			return err
		}
		line, err := b.list(ctx)
		if err != nil || r.Size == b.size && !r.alive(line) {
			return err
		}
		if r.hasChanged() { // whom the list shows may have come since
			continue
		}
		if !flushed { // the server may lag behind
			if err := b.client.Flush(ctx); err != nil {
				return err
			}
			flushed = true
			continue
		}
		if r.Size == b.size {
			return fmt.Errorf("%w: round %d", ErrLate, r.Number)
		}
		if len(line) > 0 {
			return fmt.Errorf("%w: %d, not %d", ErrSize, r.Size, b.size)
		}
		if err := b.resize(ctx, r); err != nil {
			return err
		}
	}
}

// resize sets the number of members of a barrier in which nobody is.
func (b *Barrier) resize(ctx context.Context, r reading) error {
	s := r.resized(b.size)
	err := b.client.Retry(ctx, func(ctx context.Context) error {
		_, err := b.client.Set(ctx, b.ready, encode(s), r.stat.Version)
		return err
	})
	if errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode) {
		return nil // somebody else was faster: look again
	}
	return err
}

// entrant is a member whose round has not begun.
type entrant struct {
	*Barrier
	hold *coord.Hold
	self coord.Contender
}

// await waits for the round that begins with the own member.
func (e *entrant) await(ctx context.Context) (*Member, error) {
	for {
		r, err := e.look(ctx)
		if err != nil {
			return nil, err
		}
		if index := slices.Index(r.Members, e.self.Name); r.Open && index >= 0 {
			if err := e.hold.Err(); err != nil {
				return nil, err
			}
			return newMember(e, r, index), nil
		}
		wake, sleep, err := e.act(ctx, r)
		if err != nil {
			return nil, err
		}
		if !sleep {
			continue
		}
		select {
		case <-r.changed:
		case <-wake:
		case <-e.hold.Done():
			return nil, e.hold.Err()
		case <-ctx.Done():
			return nil, coord.Ended(ctx)
		}
	}
}

// act does what the barrier's state calls for. It tells whether to sleep until
// ready changes or wake is closed, or else to look again at once.
func (e *entrant) act(ctx context.Context, r reading) (wake <-chan struct{}, sleep bool, err error) {
	switch {
	case r.Size != e.size:
		return nil, false, fmt.Errorf("%w: %d, not %d", ErrSize, r.Size, e.size)
	case e.self.Sequence < r.Next:
		// A round passed the own node over, so it was gone by then.
		return nil, false, fmt.Errorf("%w: round %d began without it: %w", coord.ErrLost, r.Number, coord.ErrNodeDeleted)
	case !r.Open && !e.mayComplete(r.state):
		return nil, true, nil
	case !r.Open:
		stat, _, err := e.client.Exists(ctx, e.path)
		if err != nil || int(stat.Children)-1 < e.size { // ready is a child, too
			return nil, true, err
		}
	}
	line, err := e.list(ctx)
	if err != nil {
		return nil, false, err
	}
	if r.Open && r.alive(line) {
		return e.queue(ctx, r, line)
	}
	sleep, err = e.open(ctx, r, line)
	return nil, sleep, err
}

// mayComplete tells whether the own arrival can have been the one that
// completes the next round: so many nodes at least have been made for it. Those
// who came before need not look: if the members are complete now, somebody who
// is there has come when they were.
func (e *entrant) mayComplete(s state) bool { return int(e.self.Sequence-s.Next) >= e.size-1 }

// queue waits, while a round is open, for the one before in line. So only the
// first who waits hears of the going of the round's own members, and finds out
// when all of them have crashed.
func (e *entrant) queue(ctx context.Context, r reading, line []coord.Contender) (wake <-chan struct{}, sleep bool, err error) {
	if !e.wait {
		return nil, false, fmt.Errorf("%w: round %d", ErrLate, r.Number)
	}
	before := line[0].Name // there is one: a member of the open round
	for _, c := range line {
		if c.Sequence < e.self.Sequence {
			before = c.Name
		}
	}
	wake, err = e.awaitGone(ctx, before)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, false, nil
	}
	return wake, true, err
}

// open begins the next round, if enough are there and all of them still are
// when it begins. It tells whether to sleep until something changes.
func (e *entrant) open(ctx context.Context, r reading, line []coord.Contender) (sleep bool, err error) {
	next, enough := r.opening(line)
	if !enough {
		return true, nil
	}
	var ops []coord.Op
	for _, name := range next.Members {
		if name != e.self.Name {
			ops = append(ops, coord.CheckOp(e.node(name), -1))
		}
	}
	ops = append(ops, coord.SetOp(e.ready, encode(next), r.stat.Version))
	err = txn(ctx, e.client, e.hold, ops...)
	switch {
	case errors.Is(err, coord.ErrLost):
		return false, err
	case errors.Is(err, coord.ErrBadVersion):
		return true, nil // what changed it has fired the watch, or will
	case errors.Is(err, coord.ErrNoNode):
		return false, nil // one has gone meanwhile; perhaps there are enough others
	}
	return false, err
}

// txn is [coord.Hold.Txn], repeated until its outcome is known: what it does
// cannot be done twice, since it sets a node of a known version.
func txn(ctx context.Context, c *coord.Client, h *coord.Hold, ops ...coord.Op) error {
	var lost error
	err := c.Retry(ctx, func(ctx context.Context) error {
		_, err := h.Txn(ctx, ops...)
		if lost = h.Err(); lost != nil {
			return nil
		}
		return err
	})
	return cmp.Or(lost, err)
}

// withdraw deletes the own node. A caller whose context has ended is hardly kept
// waiting.
func withdraw(ctx context.Context, h *coord.Hold) {
	ctx, cancel := coord.Grace(ctx)
	defer cancel()
	_ = h.Release(ctx) // what is not deleted yet is deleted in the background
}
