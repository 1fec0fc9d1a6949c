package soak

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/history"
)

// receiveWorker puts items and receives and acknowledges as many.
func receiveWorker(w *worker) (cycle, error) {
	q, err := queue.New(w.client, w.key)
	w.finish = func(ctx context.Context) error { return q.Close(ctx) }
	return func(ctx context.Context) error { return errors.Join(w.put(ctx, q), w.receive(ctx, q)) }, err
}

// takeWorker puts items and takes as many.
func takeWorker(w *worker) (cycle, error) {
	q, err := queue.New(w.client, w.key)
	w.finish = func(ctx context.Context) error { return q.Close(ctx) }
	return func(ctx context.Context) error { return errors.Join(w.put(ctx, q), w.take(ctx, q)) }, err
}

// full is how many items a queue has before nobody puts more.
const full = 60

func (w *worker) put(ctx context.Context, q *queue.Queue) error {
	if n, err := q.Len(ctx); err != nil || n > full {
		return err
	}
	limited, cancel := w.patience(ctx)
	defer cancel()
	w.items++
	item := fmt.Sprint(w.name, "-", w.items)
	op := w.rec.Call(w.name, w.key, history.Put, history.Item(item))
	w.told()
	begin := time.Now()
	err := q.Put(limited, []byte(item))
	w.ended(limited, begin, err)
	if err != nil {
		w.count("puts not confirmed")
		op.End(history.Unknown, err)
		return err
	}
	op.End(history.OK, nil)
	return nil
}

func (w *worker) take(ctx context.Context, q *queue.Queue) error {
	limited, cancel := w.patience(ctx)
	defer cancel()
	op := w.rec.Call(w.name, w.key, history.Take)
	w.told()
	begin := time.Now()
	data, err := q.Take(limited)
	w.ended(limited, begin, err)
	switch {
	case err == nil:
		op.End(history.OK, nil, history.Item(string(data)))
	case errors.Is(err, coord.ErrUnconfirmed):
		w.count("takes not confirmed")
		op.End(history.Unknown, err)
	default:
		op.End(history.Failed, err)
	}
	return err
}

func (w *worker) receive(ctx context.Context, q *queue.Queue) error {
	limited, cancel := w.patience(ctx)
	defer cancel()
	op := w.rec.Call(w.name, w.key, history.Receive)
	w.told()
	begin := time.Now()
	item, err := q.Receive(limited)
	w.ended(limited, begin, err)
	if err != nil {
		op.End(history.Failed, err)
		return err
	}
	op.End(history.OK, nil, history.Item(string(item.Data)))
	if item.Deliveries > 1 {
		w.count("items delivered again")
	}
	sure := w.trust(ctx, item, time.Now().Add(w.stay()))
	settled, cancel := context.WithTimeout(context.WithoutCancel(ctx), stuckAfter)
	defer cancel()
	kind, settle := history.Ack, item.Ack
	if w.rng.IntN(10) == 0 && !w.quiet.Load() {
		kind, settle = history.Nack, func(ctx context.Context) error { return item.Nack(ctx, 0) }
	}
	called := time.Now()
	end := w.rec.Call(w.name, w.key, kind, history.Of(op))
	if err := item.Err(); err != nil {
		op.Lost(sure, err)
	}
	w.told()
	err = settle(settled)
	switch {
	case err == nil:
		end.End(history.OK, nil)
	case errors.Is(err, queue.ErrStale):
		w.count("items lost to others before their ack")
		op.Lost(called, err) // no later than that
		outcome := history.Failed
		if kind == history.Nack { // a first attempt, whose reply was lost, may have given it back
			outcome = history.Unknown
		}
		end.End(outcome, err)
		err = nil
	default:
		end.End(history.Unknown, err)
	}
	return err
}

// drain empties the queues, so that what is missing then is lost.
func drain(ctx context.Context, s *site) error {
	for i, p := range places {
		for _, role := range p.roles {
			w := s.worker(i, p, role.suffix)
			consume := map[string]func(context.Context, *queue.Queue) error{".receive": w.receive, ".take": w.take}[role.suffix]
			if consume == nil {
				continue
			}
			if err := w.empty(ctx, consume); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) empty(ctx context.Context, consume func(context.Context, *queue.Queue) error) error {
	q, err := queue.New(w.client, w.key)
	if err != nil {
		return err
	}
	for {
		n, err := q.Len(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return q.Close(ctx)
		}
		if err := consume(ctx, q); err != nil && !expected(err) {
			return err
		}
	}
}

// drainer makes the site of a client that only drains.
func (r *run) drainer(c *coord.Client) *site {
	s := r.site("drain", 7)
	s.client, s.quiet = c, new(atomic.Bool)
	s.quiet.Store(true)
	return s
}
