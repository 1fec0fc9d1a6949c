package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Shop is a queue as its producers and consumers use it; all of one client
// share an object.
type Shop struct {
	Full  int     // no worker puts an item while there are so many
	Takes float64 // share of the items that are taken, rather than received

	queues perClient[*queue.Queue]
}

func (s *Shop) open(w *Worker, c *coord.Client) *queue.Queue {
	return s.queues.of(c, func() *queue.Queue { return must(queue.New(c, w.Key)) })
}

// Close closes all the queues, even if their clients are closed.
func (s *Shop) Close(ctx context.Context) (err error) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	for _, q := range s.queues.all {
		if e := q.Close(ctx); !errors.Is(e, coord.ErrClosed) && !errors.Is(e, coord.ErrUnconfirmed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// outcome says whether an operation took effect, by its error.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, coord.ErrUnconfirmed):
		return history.Unknown
	}
	return history.Failed
}

// Trade puts an item and consumes one.
func (s *Shop) Trade(w *Worker, c *coord.Client) bool {
	s.Produce(w, c)
	return s.Consume(w, c)
}

// Produce puts an item.
func (s *Shop) Produce(w *Worker, c *coord.Client) bool {
	q := s.open(w, c)
	counting := w.call()
	n, err := q.Len(counting.ctx)
	counting.end("Len", err)
	if err != nil || n > s.Full {
		return err == nil
	}
	var opts []queue.PutOption
	if Chance(w.Rand, 0.3) {
		opts = append(opts, queue.Priority(w.Rand.IntN(200)))
	}
	w.items++
	item := fmt.Sprint(w.Name, "-", w.items)
	op, putting := w.Rec.Call(w.Name, w.Key, history.Put, history.Item(item)), w.mostlyCertain()
	w.Flush()
	err = q.Put(putting.ctx, []byte(item), opts...)
	op.End(outcome(err), err)
	putting.end("Put", err, coord.ErrUnconfirmed)
	if err != nil {
		w.Count("puts not confirmed")
		return false
	}
	w.Count("items put")
	return true
}

// Consume takes an item, or receives and acknowledges one. After the last fault
// it does not wait for one, since a queue does not promise each consumer its
// share: to find the queue empty is a turn, too.
func (s *Shop) Consume(w *Worker, c *coord.Client) bool {
	q := s.open(w, c)
	if Chance(w.Rand, s.Takes) {
		return w.take(q)
	}
	what, f := "Receive", q.Receive
	if w.isCalm() || Chance(w.Rand, 0.1) {
		what, f = "TryReceive", q.TryReceive
	}
	if !w.isCalm() && Chance(w.Rand, 0.1) {
		return w.receiveBatch(q)
	}
	op, receiving := w.Rec.Call(w.Name, w.Key, history.Receive), w.call().untilCalm()
	w.Flush()
	item, err := f(receiving.ctx)
	receiving.end(what, err, queue.ErrEmpty)
	if err != nil {
		op.End(history.Failed, err)
		return w.isCalm() && errors.Is(err, queue.ErrEmpty)
	}
	if item.Deliveries > 1 {
		w.Count("items delivered again")
	}
	g := history.Granted(op, item, history.Item(string(item.Data)))
	w.Granted(w, item)
	linger(w, g)
	w.finish(g)
	return true
}

// receiveBatch receives several items, and acknowledges them together.
func (w *Worker) receiveBatch(q *queue.Queue) bool {
	ops := make([]*history.Op, 1+w.Rand.IntN(4))
	for i := range ops {
		ops[i] = w.Rec.Call(w.Name, w.Key, history.Receive)
	}
	receiving := w.call().untilCalm()
	items, err := q.ReceiveBatch(receiving.ctx, len(ops))
	for _, op := range ops[len(items):] {
		op.End(history.Failed, err)
	}
	receiving.end("ReceiveBatch", err)
	if err != nil {
		return false
	}
	w.Count("batches received")
	var grants []*history.Grant[*queue.Item]
	for i, item := range items {
		grants = append(grants, history.Granted(ops[i], item, history.Item(string(item.Data))))
		w.Granted(w, item)
	}
	linger(w, grants[0])
	grants = slices.DeleteFunc(grants, func(g *history.Grant[*queue.Item]) bool { return g.Err() != nil })
	var acks []*history.Op
	items = nil
	for _, g := range grants {
		items, acks = append(items, g.Hold), append(acks, g.Ends(history.Ack))
	}
	finishing := w.mostlyCertain()
	w.Flush()
	err = q.AckBatch(finishing.ctx, items...)
	how := history.OK
	if err != nil {
		how = history.Unknown // of each
	}
	for _, ack := range acks {
		ack.End(how, err)
	}
	finishing.end("AckBatch", err, queue.ErrStale, coord.ErrUnconfirmed)
	for _, g := range grants {
		w.giveBack(g)
	}
	return true
}

func (w *Worker) take(q *queue.Queue) bool {
	op, taking := w.Rec.Call(w.Name, w.Key, history.Take), w.call().untilCalm()
	f := q.Take
	if w.isCalm() {
		f = q.TryTake
	}
	w.Flush()
	data, err := f(taking.ctx)
	op.End(outcome(err), err, history.Item(string(data)))
	taking.end("Take", err, coord.ErrUnconfirmed, queue.ErrEmpty)
	if err != nil {
		return w.isCalm() && errors.Is(err, queue.ErrEmpty)
	}
	w.Granted(w, nil)
	return true
}

// finish acknowledges an item or gives it back.
func (w *Worker) finish(g *history.Grant[*queue.Item]) {
	finishing := w.mostlyCertain()
	kind, act := history.Ack, g.Hold.Ack
	unknown := func(err error) bool { return errors.Is(err, coord.ErrUnconfirmed) }
	if Chance(w.Rand, 0.15) && !w.isCalm() {
		kind, act = history.Nack, func(ctx context.Context) error { return g.Hold.Nack(ctx, 0) }
		unknown = nil // an attempt whose reply was lost may have given it back
	}
	err := g.End(kind, unknown, func() error {
		w.Flush()
		return act(finishing.ctx)
	})
	finishing.end(string(kind), err, queue.ErrStale, coord.ErrUnconfirmed)
	if err != nil {
		w.giveBack(g)
	}
}

// giveBack gives an item back that was kept when its ack failed.
func (w *Worker) giveBack(g *history.Grant[*queue.Item]) {
	if g.Hold.Err() != nil {
		return
	}
	w.Count("items kept after a failed ack")
	back := w.certain()
	err := g.End(history.Nack, nil, func() error { return g.Hold.Nack(back.ctx, 0) })
	back.end("Nack", err, queue.ErrStale, coord.ErrUnconfirmed)
}

// Drain empties the queue: items that are still missing then were lost.
func (s *Shop) Drain(ctx context.Context, w *Worker, c *coord.Client) error {
	for w.ctx = ctx; ctx.Err() == nil; {
		n, err := s.open(w, c).Len(ctx)
		if err != nil || n == 0 {
			return err
		}
		soon, cancel := context.WithTimeout(ctx, w.Pace.Timeout)
		w.ctx = soon
		s.Consume(w, c)
		cancel()
	}
	return ctx.Err()
}
