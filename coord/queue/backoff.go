package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

const (
	// DefaultBackoff is the time from a first delivery in vain to the second.
	DefaultBackoff = time.Second
	// MaxBackoff is the most that [Backoff] allows.
	MaxBackoff = 24 * time.Hour

	mostDoublings = 10

	// clockFor is how long the ensemble's time is carried on by this process's
	// clock.
	clockFor = time.Minute
)

// Backoff has an item that was delivered in vain wait before it is
// delivered again, while the items behind it are served: for d after the first
// delivery, then for twice that, and so on, ten times at most. The time counts
// from the Nack, or if the consumer ended without an answer, from the delivery,
// by the ensemble's clock. 0 is no time; the default is [DefaultBackoff].
func Backoff(d time.Duration) Option {
	return func(q *Queue) error {
		if d < 0 || d > MaxBackoff {
			return fmt.Errorf("%w: a back-off of %v; 0 to %v", coord.ErrInvalid, d, MaxBackoff)
		}
		q.dispatcher.backoff = d
		return nil
	}
}

// An entry's version counts its deliveries: it is 2n-1 from the n-th claim on,
// and 2n once the item was given back. The entry's time is then that of the
// claim, or of the Nack.

func deliveries(version int32) int { return (int(version) + 1) / 2 }

// countDelivery returns the operations that count one more delivery in the
// entry's version, and the version since then. They leave the data as they are.
func (q *Queue) countDelivery(e entry) (ops []coord.Op, version int32) {
	at, version := q.entry(e.name), e.stat.Version
	if version%2 == 1 { // its last consumer ended without an answer
		ops = append(ops, coord.SetOp(at, []byte{}, version))
		version++
	}
	return append(ops, coord.SetOp(at, e.data, version)), version + 1
}

// errLater: the item was delivered in vain, and waits.
var errLater = errors.New("delivered in vain before, and to be delivered again later")

// errAllLater: all items wait.
var errAllLater = fmt.Errorf("%w but such as were delivered in vain before, and wait to be delivered again", ErrEmpty)

// again returns when an item may be delivered again, by the ensemble's clock;
// zero for one that does not wait.
func (d *dispatcher) again(e entry) time.Time {
	n := deliveries(e.stat.Version)
	if n == 0 || d.backoff == 0 {
		return time.Time{}
	}
	return e.stat.Modified.Add(d.backoff << min(n-1, mostDoublings))
}

// wait returns how long an item is to wait before it is delivered again. Where
// that cannot be known, since the entry's time is in the future or this client
// cannot ask for the ensemble's, the item does not wait.
func (d *dispatcher) wait(ctx context.Context, e entry) (left time.Duration, err error) {
	again := d.again(e)
	if again.IsZero() {
		return 0, nil
	}
	for _, within := range []time.Duration{clockFor, 0} {
		now, err := recipe.EnsembleTime(ctx, d.client, d.at.Taken, within)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, err
		case err != nil:
			return 0, nil
		case !e.stat.Modified.After(now.Add(time.Second)): // what is carried on may lag a little
			return max(0, again.Sub(now)), nil
		}
	}
	return 0, nil
}

// ready fails with errLater, and passes the item over meanwhile, if it is to
// wait before it is delivered again. One that was not given back is in
// another's hands, as far as a consumer knows that has not listed the claims.
func (d *dispatcher) ready(ctx context.Context, e entry) error {
	left, err := d.wait(ctx, e)
	switch {
	case err != nil || left == 0:
		return err
	case e.stat.Version%2 == 1 && !d.knowsClaims():
		return errMissed
	}
	d.passOver(errLater, left, e)
	return errLater
}

// lookFurther reads ahead as many items as this receiver has passed over, each
// time that these have doubled: many items that wait cost few round trips.
func (r *receiver) lookFurther(ctx context.Context, e entry) {
	r.passed++
	if r.passed&(r.passed-1) == 0 {
		r.mu.Lock()
		r.size = r.claimSize(e)
		r.mu.Unlock()
		r.readAhead(ctx, r.passed)()
	}
}

// knowsClaims reports whether the claims were listed along with the candidates.
func (d *dispatcher) knowsClaims() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version[1] != 0
}

// passOver hands out none of the candidates for a while.
func (d *dispatcher) passOver(why error, span time.Duration, candidates ...entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range candidates {
		d.out[c.name] = why
	}
	time.AfterFunc(span, func() { d.report(errNotTried, candidates...) })
}
