package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// dispatcher hands out the items at the front of the queue to the receivers of
// one [Queue] object. A receiver takes a candidate (next), reads it, tries to
// claim or to remove it, and reports the outcome.
//
// A listing costs as much as the queue is long, so it serves for many items.
// While the queue changes, a new one is made out of a credit, which grows with
// the items handed out and with time. The listing is watched and shared by the
// process: to look at it again costs nothing while nothing has changed.
type dispatcher struct {
	nodes
	gate chan struct{} // held to list and to hand out; a channel: waiting for it ends with a context
	shut sync.Once

	mu         sync.Mutex
	receiving  int            // how many receivers are here
	consumers  *consumerCount // while they are
	names      []string       // listed and not handed out yet, in order
	length     int            // of the listing
	version    [2]int64       // of the entries and of the claims, as listed
	took       time.Duration
	misses     int     // candidates that others had, since the listing
	credit     float64 // in listings
	earned     time.Time
	share      slice
	contended  int              // there are other consumers; counts down with each request
	claimBytes int              // that each claim of such a request has, beside the item and its name
	room       int              // bytes that a request to claim items may have
	size       int              // of those, what an item of the last batch took
	out        map[string]error // handed out, and not reported yet, or passed over
	items      map[string]*Item // received, by name; nil: closed
	returned   chan struct{}    // closed when an item comes back
	ahead      map[string]entry // read ahead
	limit      int              // of deliveries before an item is dead; 0 = none
	backoff    time.Duration    // after the first delivery in vain
}

const (
	// A new listing is earned by so many items handed out, or by a part of the
	// queue, or by so many times the time that a listing takes.
	itemsPerListing = 8
	partPerListing  = 16
	timePerListing  = 50

	shortQueue = 256 // up to this length, credit for several listings is kept
	mostCredit = 4

	// contendedFor is how many times in a row a consumer obtains items without
	// a sign of another before it takes itself to be alone.
	contendedFor = 64

	// batchBytes bounds a request to claim many items, and packetBytes is the
	// part of it without the items.
	batchBytes, packetBytes = 1 << 20, 64

	// deniedFor is how long an item that this client has no permission for is
	// passed over.
	deniedFor = 10 * time.Second
)

// errMissed: another consumer was faster.
var errMissed = errors.New("another consumer has the item")

// errNotTried: the item is still to be had.
var errNotTried = errors.New("not tried")

// errAllDenied: this client may read or write none of the items.
var errAllDenied = fmt.Errorf("%w but such as this client has no permission for: %w", ErrEmpty, coord.ErrNoAuth)

// errDenied: this client may not read or write the item.
var errDenied = errors.New("no permission for the item")

func (d *dispatcher) init(l nodes) {
	d.nodes, d.gate = l, make(chan struct{}, 1)
	client := l.client.Info()
	d.room = min(client.MaxPacket, batchBytes) - packetBytes
	d.claimBytes = 3*len(client.Chroot) + 2*len(client.Identity) + 256
	d.size = d.room
	d.backoff = DefaultBackoff
	d.credit, d.out, d.items, d.returned = mostCredit, map[string]error{}, map[string]*Item{}, make(chan struct{})
}

// next hands out an item to try. It fails with [ErrEmpty] if there is none;
// then v has read what can change that.
func (d *dispatcher) next(ctx context.Context, v *coord.View) (e entry, err error) {
	open, err := d.enter(ctx)
	if err != nil {
		return e, err
	}
	defer open()
	e = d.pick(false)
	for free := 1; e.name == "" && free > 0; { // unless the listing was discarded immediately
		if free, err = d.list(ctx, v); err != nil {
			return e, err
		}
		e = d.pick(true)
	}
	if e.name == "" {
		err = d.empty()
	}
	return e, err
}

func (d *dispatcher) enter(ctx context.Context) (open func(), err error) {
	select {
	case d.gate <- struct{}{}:
		return func() { <-d.gate }, nil
	case <-ctx.Done():
		return nil, recipe.Ended(ctx)
	}
}

// list looks at the queue; the gate is held. It asks for the claims and the
// other consumers only if they are needed to find the free items and their
// number: a consumer alone knows its own claims.
func (d *dispatcher) list(ctx context.Context, v *coord.View) (free int, err error) {
	d.mu.Lock()
	contended := d.contended > 0
	v.RecheckOn(d.returned)
	d.mu.Unlock()
	begun := time.Now()
	var entries, claims dir
	listClaims := func() (err error) { claims, err = d.children(ctx, v, d.at.Taken); return err }
	parts := []func() error{func() (err error) { entries, err = d.children(ctx, v, d.at.Entries); return err }}
	if contended {
		parts = append(parts, listClaims, func() error { return d.countConsumers(ctx) })
	}
	if err := concurrently(parts...); err != nil {
		return 0, err
	}
	free = d.show(entries, claims, time.Since(begun))
	if free > 0 || contended || len(entries.names) == 0 {
		return free, nil
	}
	err = listClaims()
	return d.show(entries, claims, time.Since(begun)), err
}

// show makes candidates of the entries that nobody has, as far as that is
// known, and says how many there are. Candidates listed before stay as they
// are.
func (d *dispatcher) show(entries, claims dir, took time.Duration) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	version := [2]int64{entries.version, claims.version}
	d.misses = 0
	if version == d.version && len(d.names) > 0 {
		return len(d.names)
	}
	if version != d.version {
		d.version, d.took, d.credit = version, took, max(0, d.credit-1)
	}
	for _, name := range claims.names {
		if _, out := d.out[name]; !out && !d.has(name) {
			d.contended = contendedFor
		}
	}
	d.names = slices.DeleteFunc(unclaimed(entries.names, claims.names), func(name string) bool {
		_, out := d.out[name]
		return out || claims.version == 0 && d.has(name) // of those listed, a claim that is not there has ended
	})
	d.length = len(d.names)
	return d.length
}

// has reports whether an item is in this object's hands; d.mu is held.
func (d *dispatcher) has(name string) bool {
	item := d.items[name]
	return item != nil && !d.isLost(item)
}

// empty says that there is no item to be had.
func (d *dispatcher) empty() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := ErrEmpty
	for _, why := range d.out {
		switch why {
		case errDenied:
			return errAllDenied
		case errLater:
			err = errAllLater
		}
	}
	return err
}

// readMany reads a candidate, and at the same time up to n-1 that follow: as
// many as fit into a packet if they are of the last batch's size.
func (d *dispatcher) readMany(ctx context.Context, c entry, n int) (e entry, err error) {
	var with []entry
	var reading sync.WaitGroup
	if n > 1 {
		reading.Go(func() { with = d.takeMore(ctx, n-1) })
	}
	e, err = d.read(ctx, c)
	reading.Wait()
	e.with = with
	return e, err
}

// read reads a candidate, unless it was read ahead.
func (d *dispatcher) read(ctx context.Context, c entry) (e entry, err error) {
	d.mu.Lock()
	e, read := d.ahead[c.name]
	delete(d.ahead, c.name)
	d.mu.Unlock()
	if read {
		return e, nil
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

// readAhead reads the candidates that will probably be the next, as many as fit
// into a packet if they are of the last batch's size. It returns a function
// that waits for them.
func (d *dispatcher) readAhead(ctx context.Context, n int) (join func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ahead := map[string]entry{}
	var reading sync.WaitGroup
	for _, name := range d.nextCandidates(max(1, min(n, d.room/d.size)), false) {
		if e, read := d.ahead[name]; read {
			ahead[name] = e
			continue
		}
		reading.Go(func() {
			if e, err := d.get(ctx, name); err == nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				ahead[name] = e
			}
		})
	}
	d.ahead = ahead
	return reading.Wait
}

// report records the fate of candidates, by one request.
func (d *dispatcher) report(err error, candidates ...entry) {
	switch {
	case len(candidates) == 0 || err == errLater:
		return
	case err == errDenied:
		d.passOver(errDenied, deniedFor, candidates...)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch err {
	case nil:
		d.contended = max(0, d.contended-1)
	case errMissed:
		if d.contended == 0 {
			d.names = nil // list the claims, too
		}
		d.misses++
		d.contended = contendedFor
	default:
		d.recall()
	}
	for _, c := range candidates {
		delete(d.out, c.name)
	}
}

// shrink has the next batches be smaller, since one was too large, although the
// client allowed it (coord.WithMaxPacket).
func (d *dispatcher) shrink() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room /= 2
}
