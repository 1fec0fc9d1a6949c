package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Item is a received item. It belongs to its receiver until it is acknowledged,
// given back, or Done.
type Item struct {
	Data       []byte
	Priority   int
	Deliveries int // how often it was delivered, this time counted

	queue   *Queue
	name    string
	version int32 // of the entry since this delivery
	hold    *coord.Hold
}

// Ack removes the item from the queue: it is done. [ErrStale] when the claim
// has ended before: the item stays, and will be, or was, delivered to another.
// A reply that is lost is found out. [coord.ErrUnconfirmed] when ctx or the
// session ended before that: the item may be delivered again. One request.
func (i *Item) Ack(ctx context.Context) error {
	return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), i.version))
}

// Nack gives the item back, to its old place in the queue. With a delay, the
// claim lasts for so long, and the item goes back at once if this process or
// its session ends, or the queue is closed here; it cannot be acknowledged any
// more. [ErrStale] as with Ack. One request, and another one after a delay.
func (i *Item) Nack(ctx context.Context, delay time.Duration) error {
	own := coord.CheckOp(i.queue.entry(i.name), i.version)
	if delay <= 0 {
		return i.settle(ctx, "nack", own)
	}
	if i.queue.isParked(i) {
		return i.queue.explain("nack", ErrStale)
	}
	for {
		_, err := i.hold.Txn(ctx, own)
		switch {
		case err == nil:
			return i.queue.explain("nack", i.queue.park(i, delay))
		case errors.Is(err, coord.ErrUnconfirmed) && ctx.Err() == nil && i.hold.Err() == nil:
			// To check twice does no harm.
		case errors.Is(err, coord.ErrUnconfirmed) || errors.Is(err, coord.ErrThrottled):
			return i.queue.explain("nack", err)
		default:
			return i.end("nack", err)
		}
	}
}

func (i *Item) settle(ctx context.Context, op string, change coord.Op) error {
	if i.queue.isParked(i) {
		return i.queue.explain(op, ErrStale)
	}
	return i.end(op, i.hold.ReleaseTxn(ctx, change))
}

// end draws the consequences of what an Ack or Nack was answered with.
func (i *Item) end(op string, err error) error {
	var refused *coord.TxnError
	switch {
	case errors.As(err, &refused) && (errors.Is(refused, coord.ErrNoNode) || errors.Is(refused, coord.ErrBadVersion)):
		// The claim's path is the same for everybody; the entry's version tells
		// that another has the item now. It does not come again, so that an attempt
		// whose reply was lost cannot be carried out late either.
		i.hold.Abandon()
		err = stale(refused)
	case errors.Is(err, coord.ErrUnconfirmed): // nor is it known whether it came too late
	case errors.Is(err, coord.ErrLost), errors.Is(err, coord.ErrReleased):
		err = stale(err)
	}
	if i.hold.Err() != nil {
		i.queue.forget(i)
	}
	if err != nil || op == "nack" {
		i.queue.head.returned()
	}
	return i.queue.explain(op, err)
}

func stale(err error) error { return fmt.Errorf("%w: %w", ErrStale, err) }

// Done is closed when the claim has ended, for whatever reason; Err tells why.
// Whoever processes the item beyond that does so beside another.
func (i *Item) Done() <-chan struct{} { return i.hold.Done() }

// Err returns nil while the claim can be trusted; see [coord.Hold.Err].
func (i *Item) Err() error { return i.hold.Err() }

// Revoked is closed when somebody asked for the item; see [coord.Client.Revoke]. The
// receiver decides.
func (i *Item) Revoked() <-chan struct{} { return i.hold.Revoked() }

// Context returns a context that ends when the claim or parent does.
func (i *Item) Context(parent context.Context) context.Context { return i.hold.Context(parent) }

// keep remembers an item in the receiver's hands, unless the queue was closed.
func (q *Queue) keep(item *Item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live == nil {
		item.hold.Abandon()
		return ErrClosed
	}
	q.live[item] = nil
	return nil
}

func (q *Queue) forget(item *Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if timer := q.live[item]; timer != nil {
		timer.Stop()
	}
	delete(q.live, item)
}

// isParked tells whether the item was given back with a delay.
func (q *Queue) isParked(item *Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.live[item] != nil
}

// park keeps an item's claim for as long as nobody shall have it.
func (q *Queue) park(item *Item, delay time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	timer, known := q.live[item]
	if !known || timer != nil {
		return ErrStale
	}
	q.live[item] = time.AfterFunc(delay, func() {
		_ = item.hold.Release(context.Background()) // goes on by itself until it is done
		q.forget(item)
		q.head.returned()
	})
	return nil
}
