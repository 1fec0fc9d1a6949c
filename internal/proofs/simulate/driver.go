package simulate

import (
	"math/rand/v2"
	"sync"
	"time"
)

// driver makes trouble until told to stop.
type driver struct {
	*world
	r       *rand.Rand
	running sync.WaitGroup
	down    bool          // one restart at a time
	pause   time.Duration // how long to wait before the next fault
}

// run makes trouble for some time and repairs everything.
func (d *driver) run(total time.Duration) {
	sum := 0
	for _, t := range troubles {
		sum += t.weight
	}
	for time.Since(d.begin) < total {
		at := d.r.IntN(sum)
		for _, t := range troubles {
			if at -= t.weight; at < 0 {
				d.start(t)
				break
			}
		}
		gap := d.part(d.r, 0.02, 1)
		if chance(d.r, 0.1) {
			gap = d.part(d.r, 1, 4) // a quiet time, in which all clients recover
		}
		time.Sleep(max(gap, d.pause))
		d.pause = 0
	}
	close(d.calm)
	d.running.Wait()
	d.srv.Heal()
	d.mu.Lock()
	d.repaired = time.Now()
	d.mu.Unlock()
	d.note("last fault repaired")
}

func (d *driver) start(t trouble) {
	lasts, end := t.do(d)
	d.note("%s for %v", t.name, lasts)
	if end == nil {
		return
	}
	d.running.Go(func() {
		pause(lasts, d.calm)
		n := end()
		d.note("%s ends, struck %d", t.name, n)
		d.count(d.faults, t.name, n)
	})
}

// once is the end of a fault that happens at one moment.
func once() (time.Duration, func() int) { return 0, func() int { return 1 } }

// nothing is the end of a fault that could not happen.
func nothing() (time.Duration, func() int) { return 0, nil }

// station picks a client.
func (d *driver) station() *station { return d.stations[d.r.IntN(len(d.stations))] }

// some picks the sessions of one or more clients, or nil, which stands for all.
// It is nil, too, when no client has a session.
func (d *driver) some() (ids []int64) {
	if chance(d.r, 0.3) {
		return nil
	}
	n := 1 + d.r.IntN(max(1, len(d.stations)/2))
	for _, i := range d.r.Perm(len(d.stations)) {
		if id := d.stations[i].session(); id != 0 && len(ids) < n {
			ids = append(ids, id)
		}
	}
	return ids
}
