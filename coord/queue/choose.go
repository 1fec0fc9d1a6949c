package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

func (d *dispatcher) pick(isNew, claimed bool) (e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for claimed && len(d.claimed) > 0 {
		item := d.claimed[0]
		d.claimed = d.claimed[1:]
		if item.hold.Err() == nil {
			return entry{name: item.name, claimed: item}
		}
	}
	if isNew || !d.isDue() {
		e.name = d.handOut(isNew)
	}
	return e
}

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

func (d *dispatcher) more(ctx context.Context, n int) []entry {
	all := make([]entry, max(0, n))
	d.mu.Lock()
	for i := range all {
		if all[i].name = d.handOut(false); all[i].name == "" {
			all = all[:i]
			break
		}
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
				d.report(all[i].name, err)
				e.name = ""
			}
			all[i] = e
		})
	}
	reading.Wait()
	return slices.DeleteFunc(all, func(e entry) bool { return e.name == "" })
}

func (d *dispatcher) isDead(e entry) bool { return d.limit > 0 && e.stat.Version >= d.limit }

func (d *dispatcher) isDue() bool {
	now, limit := time.Now(), 1.0
	if d.length <= shortQueue {
		limit = mostCredit
	}
	d.credit += float64(now.Sub(d.earned)) / float64(timePerListing*max(d.took, time.Millisecond))
	d.credit, d.earned = min(d.credit, limit), now
	return d.credit >= 1 || d.misses > 2
}

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

func (d *dispatcher) front(n int) []string {
	front := d.names[:min(len(d.names), max(n, d.length/partPerListing))]
	if other := slices.IndexFunc(front, func(name string) bool { return priority(name) != priority(front[0]) }); other > 0 {
		front = front[:other]
	}
	return front
}
