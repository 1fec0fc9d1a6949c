package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
)

// ErrEmpty: there is no item that nobody has.
var ErrEmpty = errors.New("no item to be had")

// Receive waits for an item and claims it until [Item.Ack] or [Item.Nack]. If
// this process dies before, or its session ends, the item is delivered again:
// every item is processed at least once. Two requests, read and claim, when the
// listing at hand has an item that nobody else claims first.
func (q *Queue) Receive(ctx context.Context) (*Item, error) {
	return serve(ctx, q, "receive", true, q.receive)
}

// TryReceive is [Queue.Receive] without waiting: it fails with [ErrEmpty] when
// there is no item that nobody has, which it finds out by two more requests.
func (q *Queue) TryReceive(ctx context.Context) (*Item, error) {
	return serve(ctx, q, "receive", false, q.receive)
}

// Take waits for an item and removes it: it is delivered at most once, and lost
// if this process dies before it is done with it. Two requests, read and
// remove. [coord.ErrUnconfirmed] when ctx or the session ended before it was
// known whether an item was removed.
func (q *Queue) Take(ctx context.Context) ([]byte, error) {
	return serve(ctx, q, "take", true, q.take)
}

// TryTake is [Queue.Take] without waiting: it fails with [ErrEmpty].
func (q *Queue) TryTake(ctx context.Context) ([]byte, error) {
	return serve(ctx, q, "take", false, q.take)
}

// errMissed: another consumer was faster.
var errMissed = errors.New("another consumer has the item")

// errBarred: the item may not be read or written by this client.
var errBarred = errors.New("no permission for the item")

// serve finds candidates and tries them until one is obtained.
func serve[T any](ctx context.Context, q *Queue, op string, wait bool, try func(context.Context, string) (T, error)) (T, error) {
	ctx, cancel := q.untilClosed(ctx)
	defer cancel()
	var at *place
	defer func() { at.leave() }()
	for looked := false; ; {
		result, err := attempt(ctx, q, try)
		switch {
		case err == ErrEmpty && wait:
			at, err = q.wait(ctx, at)
		case err == ErrEmpty && !looked:
			looked = true
			err = q.lookAgain(ctx)
		}
		switch {
		case err == nil && result.obtained:
			return result.value, nil
		case err == ErrEmpty && q.head.bars():
			return *new(T), q.explain(op, fmt.Errorf("%w but such as this client has no permission for: %w", ErrEmpty, coord.ErrNoAuth))
		case err != nil && !passing(ctx, err):
			return *new(T), q.explain(op, err)
		}
	}
}

// lookAgain fails with [ErrEmpty] if there is nothing. The news of an item may
// be on its way to this process; when it has read the item, the news is there.
func (q *Queue) lookAgain(ctx context.Context) error {
	names, err := q.peek(ctx)
	if err == nil && len(names) == 0 {
		err = ErrEmpty
	}
	return err
}

// attempted is a result, if there is one.
type attempted[T any] struct {
	value    T
	obtained bool
}

// attempt tries one candidate.
func attempt[T any](ctx context.Context, q *Queue, try func(context.Context, string) (T, error)) (a attempted[T], err error) {
	name, found, err := q.next(ctx)
	if err != nil {
		return a, err
	}
	if !found {
		return a, ErrEmpty
	}
	a.value, err = try(ctx, name)
	switch {
	case err == nil:
		q.head.obtained(name)
		a.obtained = true
	case err == errMissed:
		q.head.missed(name)
		err = nil
	case err == errBarred:
		q.head.bar(name)
		err = nil
	default:
		q.head.failed(name)
	}
	return a, err
}

// passing tells whether the same call can have another outcome: what was left
// half-way is over with its session.
func passing(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, coord.ErrClosed) && !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrSessionExpired) || errors.Is(err, coord.ErrDisconnected) || errors.Is(err, coord.ErrLost))
}

// wait waits until there may be a candidate, at a place that it finds first.
func (q *Queue) wait(ctx context.Context, at *place) (*place, error) {
	if at == nil {
		return q.stand(ctx) // and look again, since that took its time
	}
	held, err := q.await(ctx, at)
	if !held {
		at = nil
	}
	return at, err
}

// read reads an entry, unless that has been done.
func (q *Queue) read(ctx context.Context, name string) (entry, error) {
	if e, known := q.head.readAhead(name); known {
		return e, nil
	}
	return q.get(ctx, name)
}

func (q *Queue) get(ctx context.Context, name string) (entry, error) {
	data, stat, err := q.client.Get(ctx, q.entry(name))
	return entry{name, data, stat}, err
}

// candidate reads the named entry, and buries it if it was delivered too often.
// It returns a function that waits for the next one, which is read meanwhile.
func (q *Queue) candidate(ctx context.Context, name string) (e entry, join func(), err error) {
	e, err = q.read(ctx, name)
	switch {
	case errors.Is(err, coord.ErrNoNode):
		err = errMissed
	case errors.Is(err, coord.ErrNoAuth):
		err = errBarred
	case err == nil && q.limit > 0 && e.stat.Version >= q.limit:
		err = q.bury(ctx, e)
		if errors.Is(err, coord.ErrTooLarge) {
			err = nil // it stays, and is delivered again
			break
		}
		if err == nil || errors.Is(err, coord.ErrUnconfirmed) && ctx.Err() == nil {
			err = errMissed // whoever looks next finds out what became of it
		}
	}
	var reading sync.WaitGroup
	if next, listing, ok := q.head.likely(); ok && err == nil {
		reading.Go(func() {
			if e, err := q.get(ctx, next); err == nil {
				q.head.keepAhead(e, listing)
			}
		})
	}
	return e, reading.Wait, err
}

// receive claims the named item.
func (q *Queue) receive(ctx context.Context, name string) (*Item, error) {
	e, join, err := q.candidate(ctx, name)
	defer join()
	if err != nil {
		return nil, err
	}
	id, err := q.nextClaim()
	if err != nil {
		return nil, err
	}
	item := &Item{
		Data: e.data, Priority: priority(name), Deliveries: int(e.stat.Version) + 1,
		queue: q, name: name, version: e.stat.Version + 1,
	}
	// The entry's version counts its deliveries, and so tells this claim of it
	// from every other.
	count := coord.SetOp(q.entry(name), e.data, e.stat.Version)
	claimed := func() (*coord.Claim, error) {
		return q.client.Join(ctx, coord.Spec{
			Line: coord.Line{Dir: q.taken()}, Name: name, Data: []byte(id),
			With: []coord.Op{count}, Proof: []coord.Op{coord.CheckOp(q.entry(name), item.version)},
		})
	}
	claim, err := claimed()
	if errors.Is(err, coord.ErrTooLarge) { // with the data; their delivery is not counted
		count, item.version = coord.CheckOp(q.entry(name), e.stat.Version), e.stat.Version
		claim, err = claimed()
	}
	if lostRace(err) || ctx.Err() == nil && errors.Is(err, coord.ErrUnconfirmed) && errors.Is(err, coord.ErrSessionExpired) {
		return nil, errMissed // or a session that is over here has it, until the servers end it
	}
	var refused *coord.TxnError
	if errors.Is(err, coord.ErrNoAuth) && errors.As(err, &refused) { // the entry, not the own node
		return nil, errBarred
	}
	if err != nil {
		return nil, err
	}
	item.hold, err = claim.Turn(ctx, coord.Alone)
	if err != nil {
		claim.Abandon() // Receive ends with ctx, also when no server answers
		return nil, err
	}
	return item, q.keep(item)
}

// lostRace tells whether a claim failed because another consumer was faster.
func lostRace(err error) bool {
	return !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNoNode))
}

// take removes the named item.
func (q *Queue) take(ctx context.Context, name string) ([]byte, error) {
	e, join, err := q.candidate(ctx, name)
	defer join()
	if err != nil {
		return nil, err
	}
	_, err = q.sends.Txn(ctx,
		coord.CreateOp(q.claim(name), nil, coord.Ephemeral), // nobody has it
		coord.DeleteOp(q.claim(name), -1),
		coord.DeleteOp(q.entry(name), e.stat.Version))
	if lostRace(err) {
		err = errMissed
	}
	return e.data, err
}

// bury moves an item that was delivered too often to the dead letters.
func (q *Queue) bury(ctx context.Context, e entry) error {
	dead := &Queue{client: q.client, path: q.path + "/dead"}
	for {
		_, err := q.sends.Txn(ctx,
			coord.CreateOp(q.claim(e.name), nil, coord.Ephemeral), // nobody has it
			coord.DeleteOp(q.entry(e.name), e.stat.Version),
			coord.DeleteOp(q.claim(e.name), -1),
			coord.CreateOp(dead.entry(e.name[:dash+1]), e.data, coord.Sequential))
		var refused *coord.TxnError
		switch {
		case errors.As(err, &refused) && refused.Index == 3 && errors.Is(err, coord.ErrNoNode):
			if err := dead.ensure(ctx); err != nil {
				return err
			}
		case refused != nil && refused.Index == 3 && errors.Is(err, coord.ErrNodeExists): // the counter sticks
			return fmt.Errorf("%w: %s", coord.ErrSequenceExhausted, dead.entries())
		case lostRace(err):
			return nil
		default:
			return err
		}
	}
}

// nextClaim names a claim: no two of them are the same.
func (q *Queue) nextClaim() (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live == nil {
		return "", ErrClosed
	}
	q.claims++
	return fmt.Sprintf("%s-%d", q.id, q.claims), nil
}
