package queue

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// dispatcher hands out the items at the front of the queue to the receivers of
// one [Queue] object. A receiver takes a candidate (next), reads it, tries to
// claim or to remove it, and reports the outcome.
//
// A listing costs as much as the queue is long, so it serves for many items.
// While the queue changes, a new one is made out of a credit, which grows with
// the items handed out and with time.
type dispatcher struct {
	layout
	gate   chan struct{} // held to list and to hand out; a channel, so that waiting for it ends with a context
	shut   sync.Once
	census census // guarded by the gate

	mu        sync.Mutex
	listing   listing
	credit    float64 // in listings
	earned    time.Time
	share     share
	contended int                   // there are other consumers; counts down with every item obtained
	out       map[string]bool       // handed out, and not reported yet, or denied
	denied    int                   // those that this client has no permission for
	items     map[*Item]*time.Timer // received; the timer is that of a delayed Nack. nil: closed
	returned  chan struct{}         // closed when an item comes back
	ahead     *ahead                // read ahead, or nil
	picked    time.Time             // the last candidate
}

// candidate is an item that was handed out to a receiver.
type candidate struct {
	name    string
	quick   bool // it was asked for soon after the last one
	listing int  // the number of the listing that its entry was read after
}

// ahead is an entry that was read ahead.
type ahead struct {
	entry
	listing int
}

const (
	// A new listing is earned by so many items handed out, or by a part of the
	// queue, or by so many times the time that a listing takes.
	itemsPerListing = 8
	partPerListing  = 16
	timePerListing  = 50

	shortQueue = 256 // up to this length, credit for several listings is kept
	mostCredit = 4

	// contendedFor is how many items in a row a consumer obtains without a sign
	// of another before it takes itself to be alone.
	contendedFor = 64

	// quick is how soon after the last candidate one must be asked for, if the
	// next one is to be read ahead.
	quick = 20 * time.Millisecond

	// deniedFor is how long an item that this client has no permission for is
	// passed over.
	deniedFor = 10 * time.Second
)

// errMissed: another consumer was faster.
var errMissed = errors.New("another consumer has the item")

// errDenied: this client may not read or write the item.
var errDenied = errors.New("no permission for the item")

func (d *dispatcher) init(l layout) {
	d.layout, d.gate, d.census = l, make(chan struct{}, 1), census{layout: l, id: cryptorand.Text()}
	d.credit, d.out, d.items, d.returned = mostCredit, map[string]bool{}, map[*Item]*time.Timer{}, make(chan struct{})
}

// next hands out an item to try. It fails with [ErrEmpty] if there is none;
// then v, unless it is nil, has the caller look again when there may be one.
func (d *dispatcher) next(ctx context.Context, v *coord.View) (candidate, error) {
	open, err := d.enter(ctx)
	if err != nil {
		return candidate{}, err
	}
	defer open()
	for {
		if c, ok := d.pick(); ok {
			return c, nil
		}
		if empty, err := d.isEmpty(v); empty {
			return candidate{}, err
		}
		if err := d.list(ctx); err != nil {
			return candidate{}, err
		}
	}
}

func (d *dispatcher) enter(ctx context.Context) (open func(), err error) {
	select {
	case d.gate <- struct{}{}:
		return func() { <-d.gate }, nil
	case <-ctx.Done():
		return nil, coord.Ended(ctx)
	}
}

// pick takes a candidate from the listing, unless a new listing is due.
func (d *dispatcher) pick() (c candidate, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.earn(now)
	if d.isDue() {
		d.credit = max(0, d.credit-1)
		return c, false
	}
	at := d.choose()
	if at < 0 {
		return c, false
	}
	c = candidate{d.listing.remove(at), now.Sub(d.picked) <= quick, d.listing.number}
	d.out[c.name], d.picked = true, now
	return c, true
}

// isDue tells whether the listing is to be replaced although it has candidates.
func (d *dispatcher) isDue() bool {
	l := &d.listing
	return len(l.names) > 0 && l.isOutdated() && (d.credit >= 1 || l.misses > 2)
}

// earn counts the credit for a candidate and for the time since the last one.
func (d *dispatcher) earn(now time.Time) {
	l, limit := &d.listing, 1.0
	if l.length <= shortQueue {
		limit = mostCredit
	}
	d.credit += 1 / float64(max(itemsPerListing, l.length/partPerListing))
	d.credit += float64(now.Sub(d.earned)) / float64(timePerListing*max(l.took, time.Millisecond))
	d.credit, d.earned = min(d.credit, limit), now
}

// choose returns the index of the candidate to try, or -1. A consumer alone
// takes them in order. Those beside each other share the first ones by their
// sequence numbers, so that they seldom try the same; one that finds none of
// its share there takes one of the others'.
func (d *dispatcher) choose() int {
	switch {
	case len(d.listing.names) == 0:
		return -1
	case d.contended == 0 || d.share.of < 2:
		return 0
	}
	front := d.listing.front(itemsPerListing * d.share.of)
	for i, name := range front {
		if sequence(name)%d.share.of == d.share.rank {
			return i
		}
	}
	if d.listing.isOutdated() {
		return -1
	}
	return rand.IntN(min(d.share.of, len(front)))
}

// isEmpty tells whether there is no item to be had, and a change of that would
// be noticed: by v, unless it is nil.
func (d *dispatcher) isEmpty(v *coord.View) (empty bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &d.listing
	if !l.isEmpty() {
		return false, nil
	}
	if v != nil {
		v.Until(l.entries)
		v.Until(l.claims)
		v.Until(d.returned)
	}
	if d.denied > 0 {
		return true, fmt.Errorf("%w but such as this client has no permission for: %w", ErrEmpty, coord.ErrNoAuth)
	}
	return true, ErrEmpty
}

// state tells whether there is still no item to be had, and how long it took to
// list the last time.
func (d *dispatcher) state() (empty bool, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listing.isEmpty(), d.listing.took
}

// read reads a candidate, unless it was read ahead.
func (d *dispatcher) read(ctx context.Context, c *candidate) (e entry, err error) {
	d.mu.Lock()
	a := d.ahead
	d.ahead = nil
	d.mu.Unlock()
	if a != nil && a.name == c.name {
		c.listing = a.listing
		return a.entry, nil
	}
	e, err = d.get(ctx, c.name)
	switch {
	case errors.Is(err, coord.ErrNoNode):
		err = errMissed
	case errors.Is(err, coord.ErrNoAuth):
		err = errDenied
	}
	return e, err
}

// readAhead reads the candidate that will probably be asked for next, if the
// receivers ask in quick succession. It returns a function that waits for it.
func (d *dispatcher) readAhead(ctx context.Context, after candidate) (join func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := -1
	if after.quick && d.ahead == nil && !d.isDue() {
		at = d.choose()
	}
	if at < 0 {
		return func() {}
	}
	name, number := d.listing.names[at], d.listing.number
	var reading sync.WaitGroup
	reading.Go(func() {
		if e, err := d.get(ctx, name); err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ahead = &ahead{e, number}
		}
	})
	return reading.Wait
}

// report tells what became of a candidate.
func (d *dispatcher) report(c candidate, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch err {
	case nil:
		d.contended = max(0, d.contended-1)
	case errMissed:
		if c.listing != d.listing.number {
			d.recall() // it may have been delivered, and given back before the new listing
		} else if d.contended == 0 {
			d.listing.discard() // list the claims, too
		}
		d.listing.misses++
		d.contended = contendedFor
	case errDenied:
		d.denied++
		time.AfterFunc(deniedFor, func() { d.tryAgain(c.name) })
		return
	default:
		d.recall()
	}
	delete(d.out, c.name)
}
