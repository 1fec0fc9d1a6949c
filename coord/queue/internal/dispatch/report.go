package dispatch

import (
	"time"

	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// report records the outcome of one request for its candidates.
func (d *Dispatcher) report(err error, candidates ...store.Entry) {
	switch {
	case len(candidates) == 0 || err == errLater:
		return
	case err == ErrDenied:
		d.passOver(ErrDenied, deniedFor, candidates...)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch err {
	case nil:
		d.contended = max(0, d.contended-1)
	case ErrMissed:
		if d.contended == 0 {
			d.names = nil // list the claims, too
		}
		d.misses++
		d.contended = contendedFor
	default:
		d.recall()
	}
	for _, c := range candidates {
		delete(d.out, c.Name)
	}
}

// shrink makes the next batches smaller: one was too large for the servers,
// although the client allowed it (coord.WithMaxPacket).
func (d *Dispatcher) shrink() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room /= 2
}

// passOver hands out none of the candidates for a while.
func (d *Dispatcher) passOver(why error, span time.Duration, candidates ...store.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range candidates {
		d.out[c.Name] = why
	}
	time.AfterFunc(span, func() { d.report(errNotTried, candidates...) })
}
