package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrEmpty: all items are taken, or there is none.
var ErrEmpty = errors.New("no item to be had")

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
// ([coord.WithMaxPacket]). When another consumer is faster with one of them, it
// claims one.
func (q *Queue) ReceiveBatch(ctx context.Context, n int) ([]*Item, error) {
	if n < 1 {
		return nil, q.explain("receive", fmt.Errorf("%w: a batch of %d items", coord.ErrInvalid, n))
	}
	return q.receiveBatch(ctx, "receive", n, true)
}

func (q *Queue) receiveBatch(ctx context.Context, op string, n int, wait bool) ([]*Item, error) {
	r := &receiver{dispatcher: &q.dispatcher, waits: wait, most: n}
	return serve(ctx, q, r, op, func(ctx context.Context, e entry) ([]*Item, error) { return q.obtain(ctx, e, r.most) })
}

// Take waits for an item and removes it: it is delivered at most once, and lost
// if this process dies before it is done with it. Two requests, read and
// remove. [coord.ErrUnconfirmed] when ctx or the session ended before it was
// known whether an item was removed.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	return serve(ctx, q, &receiver{dispatcher: &q.dispatcher, waits: true}, "take", q.take)
}

// TryTake is [Queue.Take] without waiting: it fails with [ErrEmpty].
func (q *Queue) TryTake(ctx context.Context) ([]byte, error) {
	return serve(ctx, q, &receiver{dispatcher: &q.dispatcher}, "take", q.take)
}

// serve tries candidates until one is obtained.
func serve[T any](ctx context.Context, q *Queue, r *receiver, op string, obtain func(context.Context, entry) (T, error)) (T, error) {
	ctx, cancel := q.untilClosed(ctx)
	defer cancel()
	r.arrive()
	defer r.leave()
	for {
		result, err := attempt(ctx, q, r, obtain)
		if err == nil {
			return result, nil
		}
		passing := isPassing(err)
		if passing && ctx.Err() == nil {
			continue
		}
		if passing {
			err = recipe.Ended(ctx, err)
		}
		return *new(T), q.explain(op, recipe.InVain(ctx, q.client, err, q.whyNone))
	}
}

// whyNone says in an error why no item came: two requests, and one for each of
// the first claims.
func (q *Queue) whyNone(ctx context.Context) (string, error) {
	entries, claims, err := q.list(ctx)
	taken := slices.DeleteFunc(claims, func(name string) bool { return !isEntry(name) })
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

// attempt tries one candidate. obtain reports the candidate that it is given.
func attempt[T any](ctx context.Context, q *Queue, r *receiver, obtain func(context.Context, entry) (T, error)) (result T, err error) {
	c, err := r.candidate(ctx)
	if err != nil {
		return result, err
	}
	e, err := r.readMany(ctx, c, r.most)
	switch {
	case err != nil:
	case r.isDead(e):
		err = q.deadLetter(ctx, e)
	default:
		err = r.ready(ctx, e)
	}
	if err != nil {
		r.report(err, c)
		r.report(errNotTried, e.with...)
		if err == errLater {
			r.lookFurther(ctx, e)
		}
		return result, err
	}
	return obtain(ctx, e)
}

// isPassing reports whether the same call can have another outcome: with
// another candidate, or since the unfinished work is over with its session.
func isPassing(err error) bool {
	if err == errMissed || err == errDenied || err == errLater {
		return true
	}
	return !errors.Is(err, coord.ErrClosed) && !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrSessionExpired) || errors.Is(err, coord.ErrDisconnected) ||
			errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrNodeDeleted))
}

// take removes an item.
func (q *Queue) take(ctx context.Context, e entry) (data []byte, err error) {
	defer func() { q.dispatcher.report(err, e) }()
	defer q.dispatcher.readAhead(ctx, 1)() // the next one meanwhile
	err = q.remove(ctx, q.nodes, e)
	if isLostRace(err) {
		err = errMissed
	}
	return e.data, err
}

// isLostRace reports whether a transaction failed because another consumer was
// faster.
func isLostRace(err error) bool {
	return !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode))
}
