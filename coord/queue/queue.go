package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/queue/internal/dispatch"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Priorities, lower first.
const (
	DefaultPriority = 100
	MaxPriority     = 999
)

// MaxSize of an item's data in bytes. ZooKeeper accepts a little more in one
// packet, but a claim needs some of that room.
const MaxSize = 1_000_000

// MaxDeliveries is the most that [DeadLetters] allows.
const MaxDeliveries = 1 << 20

// ErrStale: an item's claim has ended, because the session did, or because
// another consumer has the item now. Nothing was removed.
var ErrStale = errors.New("claim on the item has ended")

// ErrClosed: the queue was closed.
var ErrClosed = errors.New("queue is closed")

// Queue is a queue on a path. For its receivers it keeps a listing of the
// queue's front and the items that were received; one that only puts keeps
// nothing. It is safe for concurrent use.
type Queue struct {
	client     *coord.Client
	path       string
	at         nodes
	dispatcher *dispatch.Dispatcher
	hand       hand
	sends      *recipe.Transactor
	owner      string        // names this process in its claims
	limit      int           // of deliveries before an item is dead; 0 = none
	backoff    time.Duration // after the first delivery in vain
	report     func(*Item, error)
	usedUp     atomic.Int64 // the czxid of the entries' directory whose sequence numbers are, or 0

	closing context.Context // ends with Close
	close   context.CancelCauseFunc
}

// Option sets something about a [Queue].
type Option func(*Queue) error

// DeadLetters moves an item that was delivered this often without an Ack to
// the queue below path at "dead", by the last Nack, or the next time it would
// be delivered. It is a queue like any other: New(client, path+"/dead");
// [Queue.DeadLetters] returns the history of its items.
func DeadLetters(deliveries int) Option {
	return func(q *Queue) error {
		if deliveries < 1 || deliveries > MaxDeliveries {
			return fmt.Errorf("%w: dead letters after %d deliveries; 1 to %d", coord.ErrInvalid, deliveries, MaxDeliveries)
		}
		q.limit = deliveries
		return nil
	}
}

// New returns the queue at path, whose nodes are made when they are needed. It
// does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Queue, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	at := nodesOf(client, path)
	sends, err := recipe.NewTransactor(client, at.Producers)
	if err != nil {
		return nil, err
	}
	q := &Queue{
		client: client, path: path, at: at, hand: hand{items: map[string]*Item{}}, sends: sends,
		owner: client.Info().Identity, backoff: DefaultBackoff, report: func(*Item, error) {},
	}
	q.closing, q.close = context.WithCancelCause(context.Background())
	if err := recipe.Configure(q, path, opts); err != nil {
		return nil, err
	}
	q.dispatcher = dispatch.New(dispatch.Config{Nodes: at.Nodes, Limit: q.limit, Backoff: q.backoff, Has: q.hand.has})
	return q, nil
}

// Len returns how many items are in the queue, including those that were
// received and not acknowledged yet. One request.
func (q *Queue) Len(ctx context.Context) (int, error) {
	stat, _, err := q.client.Exists(ctx, q.at.Entries)
	return int(stat.Children), recipe.Failure(q.client, "count", q.path, err)
}

// Peek returns the item that would be received next, without receiving it, or
// [ErrEmpty], which also matches [coord.ErrNoAuth] if there are items that this
// client may not read. Three requests, in two round trips; one more for each
// item that was removed since the listing, may not be read, or waits to be
// delivered again.
func (q *Queue) Peek(ctx context.Context) (*Peeked, error) {
	for {
		names, err := q.at.free(ctx)
		if err == nil && len(names) == 0 {
			err = ErrEmpty
		}
		if err != nil {
			return nil, q.explain("peek", err)
		}
		next, denied, err := q.nextOf(ctx, names)
		if err == nil && denied == len(names) {
			err = dispatch.ErrAllDenied
		}
		if next != nil || err != nil {
			return next, q.explain("peek", err)
		}
	}
}

// nextOf reads items until it finds one that is not in its back-off, or else
// returns the one whose back-off ends first. It counts the items that this
// client may not read.
func (q *Queue) nextOf(ctx context.Context, names []string) (next *Peeked, denied int, err error) {
	var soonest time.Time
	for _, name := range names {
		e, err := q.at.Get(ctx, name)
		switch {
		case errors.Is(err, coord.ErrNoAuth):
			denied++
			continue
		case errors.Is(err, coord.ErrNoNode):
			continue
		}
		var again time.Time
		var left time.Duration
		if err == nil {
			again, left, err = q.dispatcher.Delay(ctx, e)
		}
		if err != nil {
			return nil, 0, err
		}
		if next == nil || left == 0 || again.Before(soonest) {
			item := peeked(e)
			next, soonest = &item, again
		}
		if left == 0 {
			break
		}
	}
	return next, denied, nil
}

// Close gives back the items that were received and not acknowledged: a queue
// object without such items need not be closed. The items in the queue stay.
// Calls that still wait in this object, and later ones, fail with [ErrClosed].
// With a ctx that has ended it does all of this, too, as [coord.Hold.Release]
// does.
func (q *Queue) Close(ctx context.Context) error {
	q.close(ErrClosed)
	q.dispatcher.Close()
	holds := q.hand.close()
	if len(holds) == 0 {
		return nil
	}
	return q.explain("close", hold.NewSet(holds[0], holds[1:]...).Release(ctx))
}

// untilClosed returns a context that ends with ctx, or when the queue is
// closed.
func (q *Queue) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(q.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// isEnd reports whether a context ended a call.
func isEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (q *Queue) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	if (errors.Is(err, coord.ErrReleased) || errors.Is(err, ErrClosed)) && !errors.Is(err, ErrStale) {
		err = ErrClosed // and not the error of the internal context
	}
	if isEnd(err) {
		var inner *coord.OpError
		if !errors.Is(err, coord.ErrUnconfirmed) && errors.As(err, &inner) && isEnd(inner.Err) {
			err = inner.Err // no request is at fault, of those that were made together
		}
		return recipe.Failure(q.client, op, q.path, err)
	}
	return &coord.OpError{Op: op, Path: q.path, Err: err}
}
