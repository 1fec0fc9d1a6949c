package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Item is a received item. It belongs to its receiver until it is acknowledged,
// given back, or Done: then another may have it. It answers questions as a hold
// does, but has no token.
type Item struct {
	coord.Held
	Data       []byte // which go to the dead letters with the item: not to be changed before
	Priority   int
	Deliveries int // how often it was delivered, this time counted

	queue   *Queue
	name    string
	version int32 // of the entry since this delivery
	counted bool  // by the version
	hold    *coord.Hold
	parked  *time.Timer // of a Nack with a delay; guarded by the hand
}

// Ack removes the item from the queue: it is done. [ErrStale] when the claim
// has ended before: the item stays, and will be, or was, delivered to another.
// The outcome is found out even if the reply is lost. [coord.ErrUnconfirmed]
// when ctx or the session ended before that: the item may be delivered again.
// When ctx ends before the request is sent, Ack has another 50 ms, as any
// release has ([recipe.Grace]). One request.
func (i *Item) Ack(ctx context.Context) error {
	return i.settle(ctx, "ack", func(ctx context.Context) error {
		return i.release(ctx, coord.DeleteOp(i.queue.at.Entry(i.name), i.version))
	})
}

// AckBatch acknowledges items of this queue object, all by one request. When
// that is refused because of one of them, each is acknowledged by itself: the
// error has all failures, and the other items are done. With an item of another
// queue object, it fails with [coord.ErrInvalid], and none is acknowledged.
func (q *Queue) AckBatch(ctx context.Context, items ...*Item) error {
	var holds []*coord.Hold
	var deletes []coord.Op
	var each []func() error
	for n, i := range items {
		if i == nil {
			return q.explain("ack", fmt.Errorf("%w: item %d is nil", coord.ErrInvalid, n))
		}
		if i.queue != q {
			return q.explain("ack",
				fmt.Errorf("%w: item %d was received by another queue object; acknowledge it there", coord.ErrInvalid, n))
		}
		holds, deletes = append(holds, i.hold), append(deletes, coord.DeleteOp(q.at.Entry(i.name), i.version))
		each = append(each, func() error { return i.Ack(ctx) })
	}
	if len(items) < 2 || slices.ContainsFunc(items, q.hand.isParked) {
		return store.Concurrently(each...)
	}
	err := finishing(ctx, func(ctx context.Context) error { return q.sends.Release(ctx, holds, deletes...) })
	if isUnsent(err) { // there is no more time
		for n, i := range items {
			each[n] = func() error { return i.end("ack", err) }
		}
	}
	if err != nil && !errors.Is(err, coord.ErrUnconfirmed) {
		return store.Concurrently(each...)
	}
	for _, i := range items {
		q.settled(i, err != nil)
	}
	return q.explain("ack", err)
}

// Nack gives the item back, to its old place in the queue, from which it is
// delivered again when its back-off is over: see [Backoff]. With a delay, the
// claim lasts that long, but the item goes back immediately if this process or
// its session ends, or the queue is closed here; it can no longer be
// acknowledged, and its back-off counts from its delivery. It fails, and
// outlasts ctx, as Ack does. Two requests.
//
// With [DeadLetters], the Nack of the last delivery moves the item to the
// dead letters, without the delay, for two requests more.
func (i *Item) Nack(ctx context.Context, delay time.Duration) error {
	return i.settle(ctx, "nack", func(ctx context.Context) error { return i.nack(ctx, delay) })
}

func (i *Item) nack(ctx context.Context, delay time.Duration) error {
	if limit := i.queue.limit; limit > 0 && store.Deliveries(i.version) >= limit {
		err := i.bury(ctx, fmt.Sprintf("given back after %d deliveries", i.Deliveries))
		if !errors.Is(err, coord.ErrTooLarge) && !errors.Is(err, coord.ErrSequenceExhausted) {
			return err
		}
	}
	if delay <= 0 {
		return i.release(ctx, i.giveBack(ctx))
	}
	err := recipe.Retry(ctx, i.queue.client, func(ctx context.Context) error {
		_, err := i.hold.Txn(ctx) // makes the claim's checks
		return err
	})
	if err == nil {
		err = i.queue.park(i, delay)
	}
	return err
}

// release ends the claim by a transaction that changes the entry.
func (i *Item) release(ctx context.Context, change coord.Op) error {
	return i.queue.sends.Release(ctx, []*coord.Hold{i.hold}, change)
}

// settle ends the delivery by f, unless that was done before.
func (i *Item) settle(ctx context.Context, op string, f func(context.Context) error) error {
	if i.queue.hand.isParked(i) {
		return i.queue.explain(op, ErrStale)
	}
	return i.end(op, finishing(ctx, f))
}

// end ends the claim as the answer to an Ack or Nack demands.
func (i *Item) end(op string, err error) error {
	var refused *coord.TxnError
	switch {
	case errors.As(err, &refused) && (errors.Is(refused, coord.ErrNoNode) || errors.Is(refused, coord.ErrBadVersion)):
		// The claim's path is the same for all consumers; the entry's version
		// reports that another has the item now.
		i.hold.Abandon()
		err = stale(refused)
	case errors.Is(err, coord.ErrUnconfirmed): // nor is it known whether it came too late
		i.hold.Abandon()
	case errors.Is(err, coord.ErrLost), errors.Is(err, coord.ErrReleased):
		err = stale(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // not sent, so the claim goes on
		i.hold.Abandon()
		err = fmt.Errorf("%w: %w", coord.ErrUnconfirmed, err)
	}
	i.queue.settled(i, err != nil || op == "nack")
	return i.queue.explain(op, err)
}

func stale(err error) error { return fmt.Errorf("%w: %w", ErrStale, err) }

// Bury moves the item to the dead letters, with or without [DeadLetters],
// and notes the reason, of up to [MaxReason] bytes: for an item that cannot be
// processed. It answers as [Item.Ack] does, and with [coord.ErrTooLarge] when
// there is no room for the reason and the data together. Three requests.
func (i *Item) Bury(ctx context.Context, reason string) error {
	if err := checkReason(reason); err != nil {
		return i.queue.explain("bury", err)
	}
	return i.settle(ctx, "bury", func(ctx context.Context) error { return i.bury(ctx, reason) })
}

func (i *Item) bury(ctx context.Context, reason string) error {
	q := i.queue
	e := store.Entry{Name: i.name, Data: i.Data}
	return q.bury(ctx, e, deathRecord{i.name, i.Deliveries, q.owner, reason}, func(made ...coord.Op) error {
		return q.sends.Release(ctx, []*coord.Hold{i.hold}, append(made, coord.DeleteOp(q.at.Entry(i.name), i.version))...)
	})
}

// giveBack returns the operation by which an item is given back, which notes
// the time: it writes the data that the item has, which its receiver may have
// changed in place.
func (i *Item) giveBack(ctx context.Context) coord.Op {
	at := i.queue.at.Entry(i.name)
	if i.counted {
		e, err := i.queue.at.Get(ctx, i.name)
		if err == nil && e.Stat.Version == i.version {
			return coord.SetOp(at, e.Data, i.version)
		}
	}
	return coord.CheckOp(at, i.version) // without the time, or to be refused
}
