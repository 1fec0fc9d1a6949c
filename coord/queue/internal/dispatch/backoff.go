package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

const (
	mostDoublings = 10

	// clockFor is how long the ensemble's time is carried on by this process's
	// clock.
	clockFor = time.Minute
)

// errLater: the item was delivered in vain, and waits.
var errLater = errors.New("delivered in vain before, and waits to be delivered again")

// errAllLater: all items wait.
var errAllLater = fmt.Errorf(
	"%w: those that are left were delivered in vain before, and wait to be delivered again", ErrEmpty)

// Delay returns when an item may be delivered again, by the ensemble's clock,
// and how long that is from now: zero for one that does not wait. Where that
// cannot be known, since the entry's time is in the future or this client
// cannot ask for the ensemble's, the item does not wait, either.
func (d *Dispatcher) Delay(ctx context.Context, e store.Entry) (again time.Time, left time.Duration, err error) {
	n := e.Deliveries()
	if n == 0 || d.backoff == 0 {
		return time.Time{}, 0, nil
	}
	again = e.Stat.Modified.Add(d.backoff << min(n-1, mostDoublings))
	for _, within := range []time.Duration{clockFor, 0} {
		now, err := recipe.EnsembleTime(ctx, d.at.Client, d.at.Taken, within)
		switch {
		case err != nil && ctx.Err() != nil:
			return again, 0, err
		case err != nil:
			return again, 0, nil
		case !e.Stat.Modified.After(now.Add(time.Second)): // the time that is carried on may lag a little
			return again, max(0, again.Sub(now)), nil
		}
	}
	return again, 0, nil
}

// ready fails with errLater, and passes the item over meanwhile, if it is to
// wait before it is delivered again. If the item was not given back and the
// claims were not listed, another consumer may have it: ready fails with
// [ErrMissed].
func (d *Dispatcher) ready(ctx context.Context, e store.Entry) error {
	_, left, err := d.Delay(ctx, e)
	switch {
	case err != nil || left == 0:
		return err
	case e.Stat.Version%2 == 1 && !d.knowsClaims():
		return ErrMissed
	}
	d.passOver(errLater, left, e)
	return errLater
}

// knowsClaims reports whether the claims were listed along with the candidates.
func (d *Dispatcher) knowsClaims() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version[1] != 0
}
