package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Call says what a receiver wants.
type Call struct {
	Most  int  // items to claim at once
	Waits bool // for an item, if there is none
}

// Claimer is what a receiver does with the items that it gets.
type Claimer interface {
	// Claim claims, or removes, all these items or none, and says which of
	// them was refused, with [ErrMissed] or [ErrDenied].
	Claim(ctx context.Context, all []store.Entry) (refused int, err error)
	// Confirm fails if all claims have ended: the reads that were made
	// meanwhile may have taken long.
	Confirm() error
	// Bury removes an item that was delivered too often, and fails with
	// [ErrMissed]. If it returns nil, the item is delivered again.
	Bury(ctx context.Context, e store.Entry) error
}

// Serve has candidates claimed until one of them is obtained, and fails with
// [ErrEmpty] when there is none and the call does not wait.
func (d *Dispatcher) Serve(ctx context.Context, by Claimer, call Call) error {
	r := &receiver{Dispatcher: d, Call: call, by: by}
	r.arrive()
	defer r.leave()
	for {
		err := r.attempt(ctx)
		switch {
		case !isPassing(err):
			return err
		case ctx.Err() != nil:
			return recipe.Ended(ctx, err)
		}
	}
}

// isPassing reports whether the same call can have another outcome: with
// another candidate, or since the unfinished work is over with its session.
func isPassing(err error) bool {
	if err == ErrMissed || err == ErrDenied || err == errLater {
		return true
	}
	return !errors.Is(err, coord.ErrClosed) && !errors.Is(err, coord.ErrUnconfirmed) &&
		(errors.Is(err, coord.ErrSessionExpired) || errors.Is(err, coord.ErrDisconnected) ||
			errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrNodeDeleted))
}

// attempt tries one candidate, and reports it.
func (r *receiver) attempt(ctx context.Context) error {
	c, err := r.candidate(ctx)
	if err != nil {
		return err
	}
	all, err := r.readMany(ctx, c, r.Most)
	e := all[0]
	switch {
	case err != nil:
	case r.isDead(e):
		err = r.by.Bury(ctx, e)
	default:
		err = r.ready(ctx, e)
	}
	if err != nil {
		r.report(err, c)
		r.report(errNotTried, all[1:]...)
		if err == errLater {
			r.lookFurther(ctx, e)
		}
		return err
	}
	return r.obtain(ctx, all)
}

// obtain has the items claimed, along with more that follow if none could be
// read along with the first. If one of them cannot be claimed, only the first
// of the others is.
func (r *receiver) obtain(ctx context.Context, all []store.Entry) (err error) {
	defer func() { r.report(err, all...) }()
	if all = r.trimToPacket(all); len(all) == 1 && r.Most > 1 {
		all = r.trimToPacket(append(all, r.takeMore(ctx, r.Most-1)...))
	}
	join := r.readAhead(ctx, r.Most)
	defer func() {
		join()
		if err == nil {
			err = r.by.Confirm()
		}
	}()
	refused, err := r.by.Claim(ctx, all)
	if err == nil || len(all) == 1 {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return err
	case err == ErrMissed || err == ErrDenied:
		r.report(err, all[refused])
		all = slices.Delete(all, refused, refused+1)
	case errors.Is(err, coord.ErrTooLarge):
		r.shrink()
	default:
		return err
	}
	r.report(errNotTried, all[1:]...)
	all = all[:1]
	_, err = r.by.Claim(ctx, all)
	return err
}
