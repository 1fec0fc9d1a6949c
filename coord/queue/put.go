package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// PutOption sets something about an item.
type PutOption func(*put) error

type put struct{ priority int }

// Priority sets an item's priority, from 0, the first to be taken, to
// [MaxPriority].
func Priority(p int) PutOption {
	return func(o *put) error {
		if p < 0 || p > MaxPriority {
			return fmt.Errorf("%w: priority %d; 0 to %d", coord.ErrInvalid, p, MaxPriority)
		}
		o.priority = p
		return nil
	}
}

// sequenceLimit is where items are refused: before the server's counter sticks,
// or turns negative and leaves the shape of the names.
const sequenceLimit = 1<<31 - 1<<16

// Put adds an item, once: a lost reply neither loses nor doubles it.
// [coord.ErrTooLarge] beyond [MaxSize]. [coord.ErrUnconfirmed] when ctx or the
// session ended before it was known whether the item was added. One request.
func (q *Queue) Put(ctx context.Context, data []byte, opts ...PutOption) error {
	return q.PutBatch(ctx, [][]byte{data}, opts...)
}

// PutBatch adds items in this order, all or none, in one request. All together
// must fit into a packet of the server's (1 MiB less some kilobytes), and a
// slow link must carry it in a quarter of the session timeout
// ([coord.ErrTooLarge]).
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
		ops[i] = coord.AppendOp(q.at.Entry(store.Prefix(set.priority)), data)
	}
	if len(ops) == 0 {
		return nil
	}
	err := q.send(ctx, ops)
	if err == nil {
		q.dispatcher.Added(set.priority)
	}
	return q.explain("put", err)
}

func (q *Queue) send(ctx context.Context, ops []coord.Op) error {
	for {
		if q.closing.Err() != nil {
			return ErrClosed
		}
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
			if err := q.at.Ensure(ctx); err != nil {
				return err
			}
		default:
			for _, m := range made {
				if name := m.Path[len(q.at.Entries)+1:]; !store.IsItem(name) || store.Sequence(name) >= sequenceLimit {
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
	stat, _, err := q.client.Exists(ctx, q.at.Entries)
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
	stat, there, err := q.client.Exists(ctx, q.at.Entries)
	if err != nil {
		return err
	}
	if there && stat.Czxid == noted {
		return fmt.Errorf("%w: %s", coord.ErrSequenceExhausted, q.at.Entries)
	}
	q.usedUp.CompareAndSwap(noted, 0)
	return nil
}
