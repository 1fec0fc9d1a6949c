package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/history"
)

// stock is how many items the producers let lie in the queue, about.
const stock = 30

// shop is a queue, its producers and its consumers.
type shop struct {
	mu        sync.Mutex
	queues    map[*coord.Client]*queue.Queue // one for all workers of a client
	producers int
	done      map[*worker]bool // producers that are
	made, out int
}

func (s *shop) open(k *worker, c *coord.Client) *queue.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[c] == nil {
		s.queues[c] = must(queue.New(c, k.key))
	}
	return s.queues[c]
}

// close closes all the queues, also those of clients that are closed.
func (s *shop) close(w *world) {
	for _, q := range s.queues {
		if err := q.Close(context.Background()); err != nil && !errors.Is(err, coord.ErrClosed) && !errors.Is(err, coord.ErrUnconfirmed) {
			w.violated("queue: close: %v", err)
		}
	}
}

// outcome says what an error leaves certain.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, coord.ErrUnconfirmed):
		return history.Unknown
	}
	return history.Failed
}

// produce puts an item.
func (s *shop) produce(k *worker, ctx context.Context, c *coord.Client) bool {
	s.mu.Lock()
	if s.made-s.out > stock && !k.isCalm() {
		s.mu.Unlock()
		return false
	}
	s.made++
	item := fmt.Sprint("item ", s.made)
	s.mu.Unlock()
	var opts []queue.PutOption
	if chance(k.r, 0.3) {
		opts = append(opts, queue.WithPriority(k.r.IntN(200)))
	}
	last := k.isCalm()
	op := k.rec.Call(k.name, k.key, history.Put, history.Item(item))
	err := s.open(k, c).Put(ctx, []byte(item), opts...)
	op.End(outcome(err), err)
	k.waited(ctx, "Put", err, coord.ErrUnconfirmed)
	if err != nil {
		return false
	}
	k.count(k.counts, "items put", 1)
	if last {
		s.mu.Lock()
		s.done[k] = true
		s.mu.Unlock()
	}
	return true
}

// consume takes an item, or receives and acknowledges one. After the last fault
// it does so until nobody produces any more and the queue is empty.
func (s *shop) consume(k *worker, ctx context.Context, c *coord.Client) bool {
	q := s.open(k, c)
	if !k.isCalm() {
		ctx, cancel := k.untilCalm(ctx)
		defer cancel()
		if chance(k.r, 0.3) {
			return s.take(k, ctx, q.Take)
		}
		return s.receive(k, ctx, q.Receive)
	}
	k.untimed()
	ctx = k.base
	for ctx.Err() == nil {
		s.mu.Lock()
		closed := len(s.done) == s.producers
		s.mu.Unlock()
		if !s.receive(k, ctx, q.TryReceive) {
			n, err := q.Len(ctx)
			if closed && err == nil && n == 0 {
				return true
			}
			pause(k.part(k.r, 0.01, 0.05), ctx.Done())
		}
	}
	return false
}

func (s *shop) take(k *worker, ctx context.Context, take func(context.Context) ([]byte, error)) bool {
	op := k.rec.Call(k.name, k.key, history.Take)
	data, err := take(ctx)
	op.End(outcome(err), err, history.Item(string(data)))
	k.waited(ctx, "Take", err, coord.ErrUnconfirmed)
	if err != nil {
		return false
	}
	k.granted(k.recipe, k.key)
	s.went()
	return true
}

// went counts an item that went out for good.
func (s *shop) went() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out++
}

func (s *shop) receive(k *worker, ctx context.Context, receive func(context.Context) (*queue.Item, error)) bool {
	op := k.rec.Call(k.name, k.key, history.Receive)
	item, err := receive(ctx)
	k.waited(ctx, "Receive", err, queue.ErrEmpty)
	if err != nil {
		op.End(history.Failed, err)
		return false
	}
	op.End(history.OK, nil, history.Item(string(item.Data)))
	if err := item.Err(); err != nil {
		op.Lost(k.rec.Begin(), err) // before anybody could trust it
	}
	k.granted(k.recipe, k.key)
	ended := make(chan struct{})
	defer close(ended)
	k.working.Go(func() {
		select {
		case <-item.Done():
			if !errors.Is(item.Err(), coord.ErrReleased) {
				op.Lost(time.Time{}, item.Err())
			}
		case <-ended:
		}
	})
	timer := time.NewTimer(k.duration())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-item.Done():
	case <-k.calm:
	}
	if err := item.Err(); err != nil {
		op.Lost(time.Time{}, err)
	}
	s.finish(k, ctx, op, item)
	return true
}

// finish acknowledges an item or gives it back.
func (s *shop) finish(k *worker, ctx context.Context, received *history.Op, item *queue.Item) {
	if chance(k.r, 0.7) || k.isCalm() {
		k.untimed()
		ctx = k.base
	}
	k.called = time.Now()
	kind, act := history.Ack, item.Ack
	if chance(k.r, 0.15) && !k.isCalm() {
		kind, act = history.Nack, func(ctx context.Context) error { return item.Nack(ctx, 0) }
	}
	op := k.rec.Call(k.name, k.key, kind, history.Of(received))
	err := act(ctx)
	k.waited(ctx, string(kind), err, queue.ErrStale, coord.ErrUnconfirmed)
	if kind == history.Nack && err != nil {
		op.End(history.Unknown, err) // a first attempt may have given it back
	} else {
		op.End(outcome(err), err)
	}
	if err == nil && kind == history.Ack {
		s.went()
	}
	if err != nil && item.Err() == nil {
		k.count(k.counts, "items kept after a failed ack", 1)
		k.untimed()
		k.waited(k.base, "Nack", item.Nack(k.base, 0), queue.ErrStale, coord.ErrUnconfirmed)
	}
}
