package doublebarrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Member is one of the n of a round. It must be ended by [Member.Leave] or
// [Member.GiveUp]; until then the others wait for it. It is safe for concurrent
// use. Its methods that a hold has too mean the same; it has ended when the
// others do not count on it any more. A Txn that is made before Leave takes
// effect before the round's end, or fails because the member is missing.
type Member struct {
	coord.Held
	barrier *Barrier
	hold    *coord.Hold
	self    coord.Contender
	open    snapshot // the round as it began, watched since
	index   int

	lastCall   time.Time // when the last call is over; zero before the least number has come
	callsAfter int64     // the number of the round before it
	brought    []byte
	data       [][]byte

	leaving chan struct{} // taken by the Leave that does it
	ended   bool          // guarded by leaving
	outcome error
	results [][]byte
}

// Round returns the number of the round, from 1. It grows from round to round.
func (m *Member) Round() int64 { return m.open.Number }

// Index returns the member's number in the round, 0 to n-1, different for each:
// good for sharing out the work.
func (m *Member) Index() int { return m.index }

// Count returns n.
func (m *Member) Count() int { return len(m.open.Members) }

// Data returns what the members have brought ([Barrier.EnterWith]), by index:
// the same for every member, nil if the round has none. The caller must not
// change it.
func (m *Member) Data() [][]byte { return m.data }

// Leave marks the member as finished and waits until every other member has, or
// is gone. It returns nil when all n have finished, and otherwise an
// [*IncompleteError]: all who leave a round get the same answer.
//
// With any other error the outcome is not known to the caller: [coord.ErrLost]
// when the others do not count on the member any more, [coord.ErrReleased]
// after [Member.GiveUp], ctx's error when ctx ended first, which after a
// deadline names those who have not finished. Then the member gives up its
// place, the others do not wait for it, and it may be missing in the outcome
// although it has finished. Leave may be called again and gives the same
// answer.
func (m *Member) Leave(ctx context.Context) error {
	_, err := m.end(ctx, nil, false)
	return err
}

// Gather is [Member.Leave] with a result: it returns the results of all
// members, by index, the same to every member that calls it. A member that left
// without a result, or is missing, has nil there. With an [*IncompleteError] it
// also returns the results there are, or nil if nobody left one. More than
// [Barrier.MaxShare] bytes fail with [coord.ErrTooLarge]: then nothing was
// done, and the member has still to leave. It costs one request more than
// Leave. The results stay in the barrier's directory until a round begins after
// all members of this one have gone.
func (m *Member) Gather(ctx context.Context, result []byte) ([][]byte, error) {
	if err := m.barrier.admitShare(result); err != nil {
		return nil, recipe.Failure(m.barrier.client, "leave", m.barrier.path, err)
	}
	return m.end(ctx, result, true)
}

// end leaves, unless another call has.
func (m *Member) end(ctx context.Context, result []byte, gather bool) ([][]byte, error) {
	select {
	case m.leaving <- struct{}{}: // also with a dead ctx, to give up the place
	default:
		select {
		case m.leaving <- struct{}{}:
		case <-ctx.Done():
			return nil, recipe.Failure(m.barrier.client, "leave", m.barrier.path, recipe.Ended(ctx))
		}
	}
	defer func() { <-m.leaving }()
	if !m.ended {
		var err error
		m.results, err = m.leave(ctx, content{m.barrier.client.Info().Identity, true, result}, gather)
		ending, cancel := recipe.Grace(ctx) // begun here, so that it covers unfinished too
		defer cancel()
		err = recipe.InVain(ctx, m.barrier.client, err, m.unfinished)
		m.outcome = recipe.Failure(m.barrier.client, "leave", m.barrier.path, err)
		m.ended = true
		if errors.Is(err, ErrIncomplete) {
			err = nil
		}
		_ = m.giveUp(ending, err) // a node that is not deleted yet is deleted in the background
	}
	return m.results, m.outcome
}

// GiveUp gives the place up without having finished: the member is missing in
// the round's outcome, and cause, if not nil, is the reason that the others get
// ([IncompleteError.Reasons]). It answers and waits as [coord.Hold.Release]
// does.
func (m *Member) GiveUp(ctx context.Context, cause error) error { return m.giveUp(ctx, cause) }

// Do enters, runs f, and leaves. f's context ends when the others do not count
// on the member any more. When f fails or panics, the member is missing in the
// round's outcome, and Do returns f's error, which is also the reason that the
// others get, without waiting for them.
func (b *Barrier) Do(ctx context.Context, f func(ctx context.Context, m *Member) error) error {
	if f == nil {
		return recipe.Failure(b.client, "do", b.path, fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	m, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	cause := errors.New("its function has not returned")
	defer func() { m.withdraw(ctx, cause) }() // has an effect unless Leave was called
	if err := f(m.Context(ctx), m); err != nil {
		cause = err
		if lost := m.Err(); errors.Is(lost, coord.ErrLost) && !errors.Is(err, lost) {
			err = recipe.Joined(err, lost)
		}
		return err
	}
	return m.Leave(ctx)
}
