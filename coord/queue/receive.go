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

// Receive waits for an item and claims it until [Item.Ack] or [Item.Nack]. If
// this process dies before, or its session ends, the item is delivered again:
// every item is processed at least once. Two requests, read and claim, when the
// listing at hand has an item that nobody else claims first.
func (q *Queue) Receive(ctx context.Context) (*Item, error) {
	for {
		name, err := q.next(ctx)
		if err != nil {
			return nil, q.explain("receive", err)
		}
		item, err := q.receive(ctx, name)
		if err != nil || item != nil {
			return item, q.explain("receive", err)
		}
	}
}

// receive claims the named item. It returns nil, and no error, when another was
// faster.
func (q *Queue) receive(ctx context.Context, name string) (*Item, error) {
	data, stat, err := q.client.Get(ctx, q.entry(name))
	switch {
	case errors.Is(err, coord.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	case q.limit > 0 && stat.Version >= q.limit:
		return nil, q.bury(ctx, name, data, stat.Version)
	}
	id, err := q.nextClaim()
	if err != nil {
		return nil, err
	}
	// The entry's version counts its deliveries, and so tells this claim of it
	// from every other.
	claim, err := q.client.Join(ctx, coord.Spec{
		Line: coord.Line{Dir: q.taken()}, Name: name, Data: []byte(id),
		With:  []coord.Op{coord.SetOp(q.entry(name), data, stat.Version)},
		Proof: []coord.Op{coord.CheckOp(q.entry(name), stat.Version+1)},
	})
	if lostRace(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hold, err := claim.Turn(ctx, coord.Alone)
	if err != nil {
		claim.Abandon() // Receive ends with ctx, also when no server answers
		if ctx.Err() == nil {
			err = nil // the session ended meanwhile: the item is free again
		}
		return nil, err
	}
	item := &Item{
		Data: data, Priority: priority(name), Deliveries: int(stat.Version) + 1,
		queue: q, name: name, version: stat.Version + 1, hold: hold,
	}
	return item, q.keep(item)
}

// lostRace tells whether a claim failed because another consumer was faster.
func lostRace(err error) bool {
	return errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode)
}

// nextClaim names a claim: no two of them are the same.
func (q *Queue) nextClaim() (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return "", ErrClosed
	}
	q.claims++
	return fmt.Sprintf("%s-%d", q.id, q.claims), nil
}

// keep remembers an item in the receiver's hands, unless the queue was closed.
func (q *Queue) keep(item *Item) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		item.hold.Abandon()
		return ErrClosed
	}
	q.live[item] = nil
	return nil
}

// forget undoes keep. It tells whether the item was known.
func (q *Queue) forget(item *Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	timer, known := q.live[item]
	if timer != nil {
		timer.Stop()
	}
	delete(q.live, item)
	return known
}

// bury moves an item that was delivered too often to the dead letters.
func (q *Queue) bury(ctx context.Context, name string, data []byte, version int32) error {
	dead := &Queue{client: q.client, path: q.path + "/dead"}
	for {
		err := q.sends.Txn(ctx,
			coord.CreateOp(q.claim(name), nil, coord.Ephemeral), // nobody has it
			coord.DeleteOp(q.entry(name), version),
			coord.DeleteOp(q.claim(name), -1),
			coord.CreateOp(dead.entry(name[:len("entry-000-")]), data, coord.PersistentSequential))
		var refused *coord.TxnError
		switch {
		case errors.As(err, &refused) && refused.Index == 3 && errors.Is(err, coord.ErrNoNode):
			if err := dead.ensure(ctx); err != nil {
				return err
			}
		case lostRace(err):
			return nil
		default:
			return err
		}
	}
}

// Ack removes the item from the queue: it is done. [ErrStale] when the claim
// has ended before: the item stays, and will be, or was, delivered to another.
// A reply that is lost is found out. One request.
func (i *Item) Ack(ctx context.Context) error {
	return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), i.version))
}

// Nack gives the item back, to its old place in the queue. With a delay, it
// stays with this process for so long, and goes back at once if the process
// ends. [ErrStale] as with Ack. One request.
func (i *Item) Nack(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return i.settle(ctx, "nack", coord.CheckOp(i.queue.entry(i.name), i.version))
	}
	if err := i.hold.Err(); err != nil {
		i.queue.forget(i)
		return i.queue.explain("nack", stale(err))
	}
	i.queue.park(i, delay)
	return nil
}

func (q *Queue) park(item *Item, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.live[item]; known {
		q.live[item] = time.AfterFunc(delay, func() {
			q.forget(item)
			item.hold.Abandon()
		})
	}
}

func (i *Item) settle(ctx context.Context, op string, change coord.Op) error {
	err := i.hold.ReleaseTxn(ctx, change)
	if errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrBadVersion) {
		// The claim's path is the same for everybody; the entry's version tells
		// that another has the item now.
		i.hold.Abandon()
		err = stale(err)
	}
	if errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrReleased) {
		err = stale(err)
	}
	if err == nil || errors.Is(err, ErrStale) || errors.Is(err, coord.ErrUnconfirmed) {
		i.queue.forget(i)
	}
	return i.queue.explain(op, err)
}

func stale(err error) error { return fmt.Errorf("%w: %w", ErrStale, err) }

// Done is closed when the claim has ended, for whatever reason; Err tells why.
// Whoever processes the item beyond that does so beside another.
func (i *Item) Done() <-chan struct{} { return i.hold.Done() }

// Err returns nil while the claim can be trusted; see [coord.Hold.Err].
func (i *Item) Err() error { return i.hold.Err() }

// Context returns a context that ends when the claim or parent does.
func (i *Item) Context(parent context.Context) context.Context { return i.hold.Context(parent) }

// Take waits for an item and removes it: it is delivered at most once, and lost
// if this process dies before it is done with it. Two requests, read and
// remove. [coord.ErrUnconfirmed] when ctx or the session ended before it was
// known whether the item was removed.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	for {
		name, err := q.next(ctx)
		if err != nil {
			return nil, q.explain("take", err)
		}
		data, stat, err := q.client.Get(ctx, q.entry(name))
		switch {
		case errors.Is(err, coord.ErrNoNode):
			continue
		case err != nil:
			return nil, q.explain("take", err)
		case q.limit > 0 && stat.Version >= q.limit:
			err = q.bury(ctx, name, data, stat.Version)
			if err != nil {
				return nil, q.explain("take", err)
			}
			continue
		}
		err = q.sends.Txn(ctx,
			coord.CreateOp(q.claim(name), nil, coord.Ephemeral), // nobody has it
			coord.DeleteOp(q.claim(name), -1),
			coord.DeleteOp(q.entry(name), stat.Version))
		if !lostRace(err) || errors.Is(err, coord.ErrUnconfirmed) {
			return data, q.explain("take", err)
		}
	}
}
