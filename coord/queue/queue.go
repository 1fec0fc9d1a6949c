package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/zkcoord/zkcoord/coord"
)

// Priorities, lower first.
const (
	DefaultPriority = 100
	MaxPriority     = 999
)

// MaxSize of an item's data in bytes. ZooKeeper accepts a little more in one
// packet, but a claim needs room beside the data.
const MaxSize = 1_000_000

// ErrStale: an item's claim has ended, because the session did, or because
// another consumer has the item now. Nothing was removed.
var ErrStale = errors.New("claim on the item has ended")

// ErrClosed: the queue was closed.
var ErrClosed = errors.New("queue is closed")

// Queue is a queue on a path. It keeps what a process needs to use it: a
// listing of its head, the items it received, and an own node for each Put that
// is made at the same time. [Queue.Close] gives them back. It is safe for
// concurrent use.
type Queue struct {
	client *coord.Client
	path   string
	sends  *coord.ExactlyOnce
	limit  int32 // deliveries before an item is dead; 0 = none
	head   head

	id string // of this object, in its claims

	closing context.Context // ends with Close
	close   context.CancelCauseFunc
	usedUp  atomic.Int64 // the czxid of the entries' directory whose sequence numbers are, or 0

	mu     sync.Mutex
	claims int                   // made so far, to tell them apart
	live   map[*Item]*time.Timer // received; the timer is that of a delayed Nack. nil: closed
}

// Option sets something about a [Queue].
type Option func(*Queue) error

// WithDeadLetters moves an item that was delivered this often without an Ack to
// the queue below path at "dead", the next time it would be delivered. It is a
// queue like any other: New(client, path+"/dead").
func WithDeadLetters(deliveries int) Option {
	return func(q *Queue) error {
		if deliveries < 1 || deliveries > 1<<20 {
			return fmt.Errorf("%w: dead letters after %d deliveries; at least 1", coord.ErrInvalid, deliveries)
		}
		q.limit = int32(deliveries)
		return nil
	}
}

// New returns the queue at path, whose nodes are made when they are needed. It
// does no I/O. An argument that cannot be right fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Queue, error) {
	if err := coord.Check(client, path); err != nil {
		return nil, err
	}
	sends, err := client.ExactlyOnce(path + "/producers")
	if err != nil {
		return nil, err
	}
	q := &Queue{
		client: client, path: path, sends: sends, id: rand.Text(), live: map[*Item]*time.Timer{},
		head: head{
			gate: make(chan struct{}, 1), trying: map[string]int{}, back: make(chan struct{}),
			credit: mostCredit, ahead: map[string]early{}, barred: map[string]time.Time{}, peers: peers{number: 1},
		},
	}
	q.closing, q.close = context.WithCancelCause(context.Background())
	if err := coord.Configure(q, path, opts); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Queue) entries() string          { return q.path + "/entries" }
func (q *Queue) taken() string            { return q.path + "/taken" }
func (q *Queue) entry(name string) string { return q.entries() + "/" + name }
func (q *Queue) claim(name string) string { return q.taken() + "/" + name }

// ensure makes the queue's directories, which are persistent, as Kazoo makes
// them: an empty queue stays.
func (q *Queue) ensure(ctx context.Context) error {
	if err := q.client.EnsureDir(ctx, q.path); err != nil {
		return err
	}
	for _, dir := range []string{q.entries(), q.taken()} {
		err := q.client.Retry(ctx, func(ctx context.Context) error { return q.client.Create(ctx, dir, []byte{}) })
		if err != nil && !errors.Is(err, coord.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// PutOption sets something about an item.
type PutOption func(*put) error

type put struct{ priority int }

// WithPriority sets an item's priority, from 0, the first to be taken, to
// [MaxPriority].
func WithPriority(p int) PutOption {
	return func(o *put) error {
		if p < 0 || p > MaxPriority {
			return fmt.Errorf("%w: priority %d; 0 to %d", coord.ErrInvalid, p, MaxPriority)
		}
		o.priority = p
		return nil
	}
}

// Put adds an item, once: a reply that is lost neither loses nor doubles it.
// [coord.ErrTooLarge] beyond [MaxSize]. [coord.ErrUnconfirmed] when ctx or the
// session ended before it was known whether the item was added. One request.
func (q *Queue) Put(ctx context.Context, data []byte, opts ...PutOption) error {
	return q.PutBatch(ctx, [][]byte{data}, opts...)
}

// PutBatch adds items in this order, all or none, in one request. All together
// must fit into a packet of the server's (1 MiB less some kilobytes).
func (q *Queue) PutBatch(ctx context.Context, items [][]byte, opts ...PutOption) error {
	set := put{priority: DefaultPriority}
	for _, opt := range opts {
		if opt == nil {
			return q.explain("put", fmt.Errorf("%w: an option is nil", coord.ErrInvalid))
		}
		if err := opt(&set); err != nil {
			return q.explain("put", err)
		}
	}
	ops := make([]coord.Op, len(items))
	for i, data := range items {
		if len(data) > MaxSize {
			return q.explain("put", fmt.Errorf("%w: item of %d bytes, the limit is %d", coord.ErrTooLarge, len(data), MaxSize))
		}
		if data == nil {
			data = []byte{} // Kazoo cannot read a node without data
		}
		ops[i] = coord.CreateOp(q.entry(fmt.Sprintf("%s%03d-", prefix, set.priority)), data, coord.Sequential)
	}
	if len(ops) == 0 {
		return nil
	}
	err := q.send(ctx, ops)
	if err == nil {
		q.head.overtaken(set.priority)
	}
	return q.explain("put", err)
}

func (q *Queue) send(ctx context.Context, ops []coord.Op) error {
	for {
		if err := q.room(ctx); err != nil {
			return err
		}
		made, err := q.sends.Txn(ctx, ops...)
		switch {
		case errors.Is(err, coord.ErrUnconfirmed):
			return err
		case errors.Is(err, coord.ErrNodeExists): // the counter sticks
			if err := q.noteUsedUp(ctx); err != nil {
				return err
			}
		case errors.Is(err, coord.ErrNoNode):
			if err := q.ensure(ctx); err != nil {
				return err
			}
		default:
			for _, m := range made {
				if name := m.Path[len(q.entries())+1:]; !isEntry(name) || sequence(name) >= sequenceLimit {
					_ = q.noteUsedUp(ctx) // for the next, which finds out itself if this fails
					break
				}
			}
			return err
		}
	}
}

// noteUsedUp notes that the entries' directory has no sequence number left.
func (q *Queue) noteUsedUp(ctx context.Context) error {
	stat, _, err := q.client.Exists(ctx, q.entries())
	if err == nil {
		q.usedUp.Store(stat.Czxid)
	}
	return err
}

// room fails when the sequence numbers are used up, and the directory has not
// been made anew since.
func (q *Queue) room(ctx context.Context) error {
	noted := q.usedUp.Load()
	if noted == 0 {
		return nil
	}
	stat, there, err := q.client.Exists(ctx, q.entries())
	if err != nil {
		return err
	}
	if there && stat.Czxid == noted {
		return fmt.Errorf("%w: %s", coord.ErrSequenceExhausted, q.entries())
	}
	q.usedUp.CompareAndSwap(noted, 0)
	return nil
}

// Len returns how many items are in the queue, those counted that were received
// and not acknowledged yet. One request.
func (q *Queue) Len(ctx context.Context) (int, error) {
	stat, _, err := q.client.Exists(ctx, q.entries())
	return int(stat.Children), err
}

// Peek returns the item that would be received next, without receiving it, or
// [ErrEmpty]. Three requests, in two round trips; one more for each item that
// was removed since the listing.
func (q *Queue) Peek(ctx context.Context) (*Peeked, error) {
	for {
		names, err := q.peek(ctx)
		if err == nil && len(names) == 0 {
			err = ErrEmpty
		}
		if err != nil {
			return nil, q.explain("peek", err)
		}
		for _, name := range names {
			data, stat, err := q.client.Get(ctx, q.entry(name))
			if err == nil {
				return &Peeked{Name: name, Data: data, Priority: priority(name), Deliveries: int(stat.Version)}, nil
			}
			if !errors.Is(err, coord.ErrNoNode) {
				return nil, q.explain("peek", err)
			}
		}
	}
}

// peek lists the items that nobody has.
func (q *Queue) peek(ctx context.Context) ([]string, error) {
	var taken []string
	var failed error
	var listing sync.WaitGroup
	listing.Go(func() { taken, failed = q.client.Children(ctx, q.taken()) })
	entries, err := q.client.Children(ctx, q.entries())
	listing.Wait()
	if errors.Is(err, coord.ErrNoNode) || errors.Is(failed, coord.ErrNoNode) {
		return nil, nil // never used
	}
	held := make(map[string]bool, len(taken))
	for _, name := range taken {
		held[name] = true
	}
	entries = slices.DeleteFunc(entries, func(name string) bool { return !isEntry(name) || held[name] })
	slices.Sort(entries)
	return entries, errors.Join(err, failed)
}

// Peeked is an item as [Queue.Peek] saw it.
type Peeked struct {
	Name       string // of its node
	Data       []byte
	Priority   int
	Deliveries int // so far
}

// Close gives back what the queue object holds in ZooKeeper: items received and
// not acknowledged go back to the queue. The items in the queue stay. Whoever
// still waits in this object is refused with [ErrClosed]. With a dead ctx it
// does all of this, too, as [coord.Hold.Release] does.
func (q *Queue) Close(ctx context.Context) error {
	q.close(ErrClosed)
	q.mu.Lock()
	live := q.live
	q.live = nil
	q.mu.Unlock()
	holds := []*coord.Hold{}
	for item, timer := range live {
		if timer != nil {
			timer.Stop()
		}
		holds = append(holds, item.hold)
	}
	q.head.gate <- struct{}{} // also with a dead ctx: whoever lists is told to end, too
	if q.head.self != nil {
		holds = append(holds, q.head.self)
	}
	<-q.head.gate
	failures := []error{q.sends.Close(ctx)}
	if len(holds) > 0 {
		failures = append(failures, coord.NewGroup(holds[0], holds[1:]...).Release(ctx))
	}
	return q.explain("close", multierror.Append(nil, failures...).ErrorOrNil())
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

func (q *Queue) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	if (errors.Is(err, coord.ErrReleased) || errors.Is(err, ErrClosed)) && !errors.Is(err, ErrStale) {
		err = ErrClosed // and not that of the context made for it
	}
	return &coord.OpError{Op: op, Path: q.path, Err: err}
}
