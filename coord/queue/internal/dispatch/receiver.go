package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// receiver is one Receive or Take. While there is nothing to do, it stands in
// the line of the idle, of which only the first two watch the queue: a put
// wakes those two, and not all. The second is there in case the first does not
// move: it looks once the first has gone, as is usual, or some time after a
// change. The line decides only who is woken: a receiver that comes when there
// is an item takes it without standing in line.
type receiver struct {
	*Dispatcher
	Call
	by     Claimer
	looked bool        // it looked again before it says that there is none
	passed int         // items that wait to be delivered again
	stands bool        // it has a place from which it watches
	place  *coord.Hold // in the line; nil for a consumer alone
	first  string      // the node of the first in line, unless it is this one
	turn   time.Time   // when the second is to look although the first has not gone
}

// secondWaits is how long the second in line leaves a change to the first, or
// four times what a listing takes, whichever is more.
const secondWaits = 30 * time.Millisecond

// candidate returns an item to try. If there is none, it waits for one, or
// fails with [ErrEmpty].
func (r *receiver) candidate(ctx context.Context) (e store.Entry, err error) {
	for {
		e, err = r.look(ctx)
		switch {
		case !errors.Is(err, ErrEmpty):
			return e, err
		case r.Waits:
			err = r.stand(ctx)
		case !r.looked:
			// The event of a new item may be on its way to this process. It
			// comes before the answer to any request.
			r.looked = true
			_, _, err = r.at.Client.Exists(ctx, r.at.Entries)
		}
		if err != nil {
			return e, err
		}
	}
}

// look looks for a candidate, and from a place among the idle waits for one.
func (r *receiver) look(ctx context.Context) (e store.Entry, err error) {
	woken := false
	err = r.at.Client.Wait(ctx, func(v *coord.View) (done bool, err error) {
		if woken {
			if waits, err := r.givesWay(v); waits || err != nil {
				return false, err
			}
		}
		woken = true
		e, err = r.next(ctx, v)
		if !errors.Is(err, ErrEmpty) || !r.stands || r.place != nil && r.place.Err() != nil {
			return true, err
		}
		if r.place != nil {
			v.RecheckOn(r.place.Done())
		}
		return false, nil
	})
	return e, err
}

// stand waits for a place from which the queue is watched.
func (r *receiver) stand(ctx context.Context) error {
	open, err := r.enter(ctx)
	if err != nil {
		return err
	}
	err = r.countConsumers(ctx)
	alone := r.share.of < 2 && r.consumers.isAlone()
	open()
	r.place, r.first, r.stands = nil, "", err == nil && alone
	if err != nil || alone {
		return err
	}
	spec := coord.Spec{Line: r.at.Waiting, Kind: "wait", Recipe: r.at.Path}
	r.place, err = recipe.Acquire(ctx, r.at.Client, &spec, r.rule)
	r.stands = err == nil
	return err
}

// rule lets two watch the queue.
func (r *receiver) rule(ahead []coord.Contender) (wait []int, granted bool) {
	n := len(ahead)
	if n > 1 {
		return []int{n - 1, n - 2}, false // when one of these goes, at most two are left before it
	}
	r.first = ""
	if n == 1 {
		r.first = ahead[0].Name
	}
	return nil, true
}

// arrive notes a receiver.
func (d *Dispatcher) arrive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receiving++
	if d.receiving == 1 {
		d.consumers = enter(d.at, d.options())
	}
}

// leave gives the place to the next. It does not wait until that is done.
func (r *receiver) leave() {
	r.mu.Lock()
	r.receiving--
	if r.receiving == 0 {
		r.consumers.leave()
	}
	r.mu.Unlock()
	if r.place != nil {
		r.place.Abandon()
	}
}

// givesWay reports whether the first in line is to look at a change before this
// one does: until it has gone, or for a while.
func (r *receiver) givesWay(v *coord.View) (bool, error) {
	if r.first == "" {
		return false, nil
	}
	if r.turn.IsZero() {
		r.mu.Lock()
		r.turn = time.Now().Add(max(secondWaits, 4*r.took))
		r.mu.Unlock()
	}
	if time.Now().Before(r.turn) {
		_, _, err := v.Get(r.at.Waiting.Dir + "/" + r.first)
		if !errors.Is(err, coord.ErrNoNode) {
			v.RecheckAt(r.turn)
			return true, err
		}
		r.first = ""
	}
	r.turn = time.Time{}
	return false, nil
}
