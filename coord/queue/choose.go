package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pick takes up to n items that were claimed ahead, or a candidate from the
// listing, or none when the queue is to be looked at, which it just was if the
// listing is new.
func (d *dispatcher) pick(isNew bool, n int) (e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(e.claimed) < n && len(d.claimed) > 0 {
		item := d.claimed[0]
		d.claimed = slices.Delete(d.claimed, 0, 1)
		if item.hold.Err() != nil {
			d.forget(item)
			continue
		}
		e.name, e.claimed = item.name, append(e.claimed, item)
	}
	if e.name == "" && (isNew || !d.isDue()) {
		e.name = d.handOut(isNew)
	}
	return e
}

// handOut takes a candidate from the listing, or returns "" if there is none;
// d.mu is held.
func (d *dispatcher) handOut(isNew bool) string {
	at := d.choose(isNew)
	if at < 0 {
		return ""
	}
	name := d.names[at]
	copy(d.names[1:at+1], d.names[:at])
	d.names, d.out[name] = d.names[1:], true
	d.credit += 1 / float64(max(itemsPerListing, d.length/partPerListing))
	return name
}

// more hands out up to n further candidates of the listing at hand, as many as
// fit into a packet along with the first if they are of its size, and reads
// them together. What is not to be had like that is left for later.
func (d *dispatcher) more(ctx context.Context, first entry, n int) []entry {
	var all []entry
	d.mu.Lock()
	size := d.claimSize(first)
	room := d.room - size
	for len(all) < min(n, room/size) {
		name := d.handOut(false)
		if name == "" {
			break
		}
		all = append(all, entry{name: name})
	}
	d.mu.Unlock()
	var reading sync.WaitGroup
	for i := range all {
		reading.Go(func() {
			e, err := d.read(ctx, all[i])
			if err == nil && d.isDead(e) {
				err = errNotTried
			}
			if err != nil {
				d.report(err, all[i])
				e.name = ""
			}
			all[i] = e
		})
	}
	reading.Wait()
	all = slices.DeleteFunc(all, func(e entry) bool { return e.name == "" })
	fit := slices.IndexFunc(all, func(e entry) bool { room -= d.claimSize(e); return room < 0 })
	if fit < 0 {
		return all
	}
	d.report(errNotTried, all[fit:]...)
	return all[:fit]
}

// claimSize is at least what the claim of an item takes in a packet: three
// paths, the data of the claim twice and those of the item, and a few numbers.
// An ACL of many entries is not allowed for.
func (d *dispatcher) claimSize(e entry) int {
	return 3*len(d.client.Chroot()+d.entry(e.name)) + 2*len(d.client.Identity()) + len(e.data) + 256
}

// isDead tells whether an item was delivered too often.
func (d *dispatcher) isDead(e entry) bool { return d.limit > 0 && e.stat.Version >= d.limit }

// isDue tells whether the queue is to be looked at although there are
// candidates; d.mu is held.
func (d *dispatcher) isDue() bool {
	now, limit := time.Now(), 1.0
	if d.length <= shortQueue {
		limit = mostCredit
	}
	d.credit += float64(now.Sub(d.earned)) / float64(timePerListing*max(d.took, time.Millisecond))
	d.credit, d.earned = min(d.credit, limit), now
	return d.credit >= 1 || d.misses > 2
}

// choose returns the index of the candidate to try, or -1; d.mu is held. A
// consumer alone takes them in order. Those beside each other share the first
// ones by their sequence numbers, so that they seldom try the same. One that
// finds none of its share in a new listing takes one of the others'.
func (d *dispatcher) choose(isNew bool) int {
	switch {
	case len(d.names) == 0:
		return -1
	case d.contended == 0 || d.share.of < 2:
		return 0
	}
	front := d.front(itemsPerListing * d.share.of)
	own := slices.IndexFunc(front, func(name string) bool { return sequence(name)%d.share.of == d.share.rank })
	if own < 0 && isNew {
		return rand.IntN(min(d.share.of, len(front)))
	}
	return own
}

// front is what consumers beside each other choose from: the first candidates
// of the same priority, so many or a part of the queue.
func (d *dispatcher) front(n int) []string {
	front := d.names[:min(len(d.names), max(n, d.length/partPerListing))]
	if other := slices.IndexFunc(front, func(name string) bool { return priority(name) != priority(front[0]) }); other > 0 {
		front = front[:other]
	}
	return front
}
