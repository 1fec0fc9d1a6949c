package dispatch

import (
	"context"
	"errors"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// readMany reads a candidate, and at the same time up to n-1 that follow: as
// many as fit into a packet if they are of the last batch's size.
func (d *Dispatcher) readMany(ctx context.Context, c store.Entry, n int) (all []store.Entry, err error) {
	all = make([]store.Entry, 1)
	if n == 1 {
		all[0], err = d.read(ctx, c)
		return all, err
	}
	var with []store.Entry
	var reading sync.WaitGroup
	reading.Go(func() { with = d.takeMore(ctx, n-1) })
	all[0], err = d.read(ctx, c)
	reading.Wait()
	return append(all, with...), err
}

// read reads a candidate, unless it was read ahead.
func (d *Dispatcher) read(ctx context.Context, c store.Entry) (e store.Entry, err error) {
	d.mu.Lock()
	e, read := d.ahead[c.Name]
	delete(d.ahead, c.Name)
	d.mu.Unlock()
	if read {
		return e, nil
	}
	e, err = d.at.Get(ctx, c.Name)
	switch {
	case errors.Is(err, coord.ErrNoNode):
		err = ErrMissed
	case errors.Is(err, coord.ErrNoAuth):
		err = ErrDenied
	}
	return e, err
}

// readAhead reads the candidates that will probably be the next, as many as fit
// into a packet if they are of the last batch's size. It returns a function
// that waits for them.
func (d *Dispatcher) readAhead(ctx context.Context, n int) (join func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ahead := map[string]store.Entry{}
	var reading sync.WaitGroup
	for _, name := range d.nextCandidates(max(1, min(n, d.room/d.size)), false) {
		if e, read := d.ahead[name]; read {
			ahead[name] = e
			continue
		}
		reading.Go(func() {
			if e, err := d.at.Get(ctx, name); err == nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				ahead[name] = e
			}
		})
	}
	d.ahead = ahead
	return reading.Wait
}

// lookFurther reads ahead as many items as this receiver has passed over, each
// time that their number has doubled: so many items that wait cost few round
// trips.
func (r *receiver) lookFurther(ctx context.Context, e store.Entry) {
	r.passed++
	if r.passed&(r.passed-1) == 0 {
		r.mu.Lock()
		r.size = r.claimSize(e)
		r.mu.Unlock()
		r.readAhead(ctx, r.passed)()
	}
}
