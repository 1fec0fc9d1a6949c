package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// pick takes a candidate from the listing, or none if the queue is to be listed
// again. A new listing is used as it is.
func (d *Dispatcher) pick(isNew bool) (e store.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isNew || !d.isDue() {
		if names := d.handOut(1, isNew); len(names) > 0 {
			e.Name = names[0]
		}
	}
	return e
}

// handOut takes up to n candidates from the listing; d.mu is held.
func (d *Dispatcher) handOut(n int, isNew bool) []string {
	names := d.nextCandidates(n, isNew)
	for _, name := range names {
		at := slices.Index(d.names, name)
		copy(d.names[1:at+1], d.names[:at])
		d.names, d.out[name] = d.names[1:], nil
		d.credit += 1 / float64(max(itemsPerListing, d.length/partPerListing))
	}
	return names
}

// takeMore hands out up to n further candidates of the listing at hand, as many
// as fit into a packet along with one if all are of the last batch's size, and
// reads them together. Those that cannot be delivered now are left out.
func (d *Dispatcher) takeMore(ctx context.Context, n int) (all []store.Entry) {
	d.mu.Lock()
	for _, name := range d.handOut(max(0, min(n, d.room/d.size-1)), false) {
		all = append(all, store.Entry{Name: name})
	}
	d.mu.Unlock()
	var reading sync.WaitGroup
	for i := range all {
		reading.Go(func() {
			e, err := d.read(ctx, all[i])
			switch {
			case err != nil:
			case d.isDead(e):
				err = errNotTried
			default:
				err = d.ready(ctx, e)
			}
			if err != nil {
				d.report(err, all[i])
				e.Name = ""
			}
			all[i] = e
		})
	}
	reading.Wait()
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.Name == "" })
}

// trimToPacket gives back what does not fit into a packet along with the first.
// The next batch counts on the first one's size.
func (d *Dispatcher) trimToPacket(all []store.Entry) []store.Entry {
	d.mu.Lock()
	d.size = d.claimSize(all[0])
	room := d.room
	d.mu.Unlock()
	if n := slices.IndexFunc(all, func(e store.Entry) bool { room -= d.claimSize(e); return room < 0 }); n >= 0 {
		n = max(n, 1)
		d.report(errNotTried, all[n:]...)
		all = all[:n]
	}
	return all
}

// claimSize is at least what the claim of an item takes in a packet: three
// paths, the data of the claim twice and those of the item, and a few numbers.
// An ACL of many entries is not allowed for.
func (d *Dispatcher) claimSize(e store.Entry) int {
	return d.claimBytes + 3*len(d.at.Entry(e.Name)) + len(e.Data)
}

// isDead reports whether an item was delivered too often.
func (d *Dispatcher) isDead(e store.Entry) bool {
	return d.limit > 0 && e.Deliveries() >= d.limit
}

// isDue reports whether the queue is to be listed again although there are
// candidates; d.mu is held.
func (d *Dispatcher) isDue() bool {
	now, limit := time.Now(), 1.0
	if d.length <= shortQueue {
		limit = mostCredit
	}
	d.credit += float64(now.Sub(d.earned)) / float64(timePerListing*max(d.took, time.Millisecond))
	d.credit, d.earned = min(d.credit, limit), now
	return d.credit >= 1 || d.misses > 2
}

// nextCandidates returns up to n candidates to try next; d.mu is held. A single
// consumer takes them in order. Several consumers divide the first items of the
// highest priority among themselves by sequence number, and so seldom try the
// same one: itemsPerListing items for each consumer, or 1/partPerListing of the
// queue if that is more. A consumer that finds none of its share in a new
// listing takes another's item.
func (d *Dispatcher) nextCandidates(n int, isNew bool) (own []string) {
	if d.contended == 0 || d.share.of < 2 {
		return d.names[:min(n, len(d.names))]
	}
	at, width := 0, max(itemsPerListing*d.share.of, d.length/partPerListing)
	for ; len(own) < n && at < min(len(d.names), width+len(own)); at++ {
		name := d.names[at]
		if store.Priority(name) != store.Priority(d.names[0]) {
			break
		}
		if store.Sequence(name)%d.share.of == d.share.rank {
			own = append(own, name)
		}
	}
	if at > 0 && len(own) == 0 && isNew {
		own = append(own, d.names[rand.IntN(min(d.share.of, at))])
	}
	return own
}
