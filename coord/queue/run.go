package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Func processes an item. Its context ends when the claim on the item does.
type Func = func(ctx context.Context, item *Item) error

// Run receives items, one after the other, and calls f with each, until ctx
// ends. When f returns nil, the item is acknowledged; when it fails, the item
// is given back, to be delivered again later ([Backoff]). f may end the
// claim itself, by [Item.Bury] for instance. To process several items at a
// time, call Run several times. Errors of f do not end Run: see [OnEnd].
//
// The end of ctx ends only the wait for the next item: f's context goes on, so
// that the item under way is finished, and Run returns when it is acknowledged.
// A ctx of signal.NotifyContext is right, and no item is processed twice
// because its consumer is stopped in an orderly way. A function that is to give
// up sooner looks at the ctx of Run as well: an error then gives the item back.
func (q *Queue) Run(ctx context.Context, f Func) error {
	if f == nil {
		return q.explain("run", fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	for {
		items, err := q.receiveBatch(ctx, "run", 1, true)
		if err != nil {
			return err
		}
		items[0].perform(ctx, f)
	}
}

// OnEnd calls f when [Queue.Run] is done with an item: with its function's
// error, or why the item was not acknowledged or given back, or nil.
func OnEnd(f func(*Item, error)) Option {
	return func(q *Queue) error {
		if f == nil {
			return fmt.Errorf("%w: the report is nil", coord.ErrInvalid)
		}
		q.report = f
		return nil
	}
}

// perform calls the function and ends the claim.
func (i *Item) perform(ctx context.Context, f Func) {
	returned := false
	defer func() {
		if !returned { // it panics
			i.hold.Abandon()
		}
	}()
	working := i.Context(context.WithoutCancel(ctx)) // ends with the claim, after which nothing could be acknowledged
	failure := f(working, i)
	returned = true
	var err error
	switch {
	case errors.Is(i.hold.Err(), coord.ErrReleased) || i.queue.hand.isParked(i): // by f
	case failure == nil:
		err = i.Ack(working)
	default:
		err = i.Nack(working, 0)
	}
	i.queue.report(i, recipe.Joined(failure, err))
}

// finishing calls f, and if ctx ends before f has sent anything, once more,
// within [recipe.Grace]: a signal that ends ctx must not undo finished work.
func finishing(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		over := ctx.Err() != nil
		longer, cancel := recipe.Grace(ctx)
		err := f(longer)
		cancel()
		if over || ctx.Err() == nil || !isUnsent(err) {
			return err
		}
	}
}

// isUnsent reports whether a call failed since its context ended before it had
// sent anything.
func isUnsent(err error) bool {
	return !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}
