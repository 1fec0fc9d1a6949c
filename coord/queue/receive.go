package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/dispatch"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrEmpty: all items are taken, or there is none.
var ErrEmpty = dispatch.ErrEmpty

// Receive waits for an item and claims it until [Item.Ack] or [Item.Nack]. If
// this process dies before, or its session ends, the item is delivered again:
// every item is processed at least once. Two requests, read and claim, when the
// listing at hand has an item that nobody else claims first; of a batch
// ([Queue.ReceiveBatch]), one and a share of another.
func (q *Queue) Receive(ctx context.Context) (*Item, error) {
	return q.receive(ctx, true)
}

// TryReceive is [Queue.Receive] without waiting: it fails with [ErrEmpty] when
// no item is free, which it finds out by one more request.
func (q *Queue) TryReceive(ctx context.Context) (*Item, error) {
	return q.receive(ctx, false)
}

func (q *Queue) receive(ctx context.Context, wait bool) (*Item, error) {
	items, err := q.receiveBatch(ctx, "receive", 1, wait)
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// ReceiveBatch waits for an item and claims up to n, as many as there are then
// in the listing at hand, in one transaction: one request for each to read it,
// all together, and one for the claims, along with which it reads as many for
// the next call. No more are claimed than fit into one packet
// ([coord.WithMaxPacket]). When another consumer has claimed one of them first,
// it claims a single item.
func (q *Queue) ReceiveBatch(ctx context.Context, n int) ([]*Item, error) {
	if n < 1 {
		return nil, q.explain("receive", fmt.Errorf("%w: a batch of %d items", coord.ErrInvalid, n))
	}
	return q.receiveBatch(ctx, "receive", n, true)
}

func (q *Queue) receiveBatch(ctx context.Context, op string, n int, wait bool) ([]*Item, error) {
	d := &delivery{q: q}
	err := q.serve(ctx, op, d, dispatch.Call{Most: n, Waits: wait})
	return d.items, err
}

// Take waits for an item and removes it: it is delivered at most once, and lost
// if this process dies before it is done with it. Two requests, read and
// remove. [coord.ErrUnconfirmed] when ctx or the session ended before it was
// known whether an item was removed.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	return q.takeOne(ctx, true)
}

// TryTake is [Queue.Take] without waiting: it fails with [ErrEmpty].
func (q *Queue) TryTake(ctx context.Context) ([]byte, error) {
	return q.takeOne(ctx, false)
}

func (q *Queue) takeOne(ctx context.Context, wait bool) ([]byte, error) {
	r := &removal{q: q}
	err := q.serve(ctx, "take", r, dispatch.Call{Most: 1, Waits: wait})
	return r.data, err
}

// serve tries candidates until it obtains one.
func (q *Queue) serve(ctx context.Context, op string, by dispatch.Claimer, call dispatch.Call) error {
	ctx, cancel := q.untilClosed(ctx)
	defer cancel()
	err := q.dispatcher.Serve(ctx, by, call)
	if err == nil {
		return nil
	}
	return q.explain(op, recipe.InVain(ctx, q.client, err, q.whyNone))
}

// whyNone returns, for an error, why no item came: two requests, and one for
// each of the first claims.
func (q *Queue) whyNone(ctx context.Context) (string, error) {
	entries, claims, err := q.at.list(ctx)
	taken := slices.DeleteFunc(claims, func(name string) bool { return !store.IsItem(name) })
	slices.Sort(taken)
	switch {
	case err != nil && !errors.Is(err, coord.ErrNoNode):
		return "", err
	case len(entries) == 0:
		return "the queue was empty", nil
	case len(taken) == 0:
		return fmt.Sprintf("%d in the queue, and none to be delivered yet", len(entries)), nil
	}
	first, err := q.Claims(ctx, taken[:min(len(taken), recipe.MostNamed)]...)
	return fmt.Sprintf("%d in the queue, %d of them %s", len(entries), len(taken), recipe.HeldBy(first, len(taken))), err
}

// removal is a Take under way.
type removal struct {
	q    *Queue
	data []byte
}

// Claim removes an item.
func (r *removal) Claim(ctx context.Context, es []store.Entry) (refused int, err error) {
	err = r.q.remove(ctx, r.q.at, es[0])
	switch {
	case err == nil:
		r.data = es[0].Data
	case isLostRace(err):
		err = dispatch.ErrMissed
	}
	return 0, err
}

// Confirm has nothing to say: what was removed is not lost.
func (r *removal) Confirm() error { return nil }

func (r *removal) Bury(ctx context.Context, e store.Entry) error { return r.q.deadLetter(ctx, e) }

// isLostRace reports whether a transaction failed because another consumer was
// faster.
func isLostRace(err error) bool {
	return !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode))
}
