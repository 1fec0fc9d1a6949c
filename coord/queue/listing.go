package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// listing is the queue as it was listed. The zero listing shows nothing, and is
// replaced at once.
type listing struct {
	number  int
	names   []string        // the candidates that were not handed out yet, in order
	length  int             // how many there were
	entries <-chan struct{} // closed when the entries are not those listed any more; nil: list in any case
	claims  <-chan struct{} // the same of the claims; nil: they were not listed
	partial bool            // they were not, though an end of one could make a candidate
	used    bool            // a candidate was handed out
	misses  int             // candidates that others had
	took    time.Duration
}

// isEmpty tells whether there is nothing to hand out until there is a change,
// which would be noticed.
func (l *listing) isEmpty() bool {
	return len(l.names) == 0 && l.entries != nil && !isClosed(l.entries) && !isClosed(l.claims) && !l.partial
}

// isOutdated tells whether there was a change since candidates were handed out.
func (l *listing) isOutdated() bool {
	return l.used && (isClosed(l.entries) || isClosed(l.claims))
}

func (l *listing) discard() { l.names, l.entries = nil, nil }

// remove removes a candidate from the front.
func (l *listing) remove(at int) string {
	name := l.names[at]
	copy(l.names[1:at+1], l.names[:at])
	l.names, l.used = l.names[1:], true
	return name
}

// front is what consumers beside each other choose from: the first candidates
// of the same priority, so many or a part of the queue.
func (l *listing) front(n int) []string {
	front := l.names[:min(len(l.names), max(n, l.length/partPerListing))]
	if other := slices.IndexFunc(front, func(name string) bool { return priority(name) != priority(front[0]) }); other > 0 {
		front = front[:other]
	}
	return front
}

// list makes a listing; the gate is held. It asks for the claims and the other
// consumers only if they are needed to tell what is free: a consumer alone
// knows its own claims.
func (d *dispatcher) list(ctx context.Context) error {
	d.mu.Lock()
	contended := d.contended > 0
	d.mu.Unlock()
	begun := time.Now()
	var entries, claims dir
	listEntries := func() (err error) { entries, err = d.watch(ctx, d.entries()); return err }
	listClaims := func() (err error) { claims, err = d.watch(ctx, d.taken()); return err }
	parts := []func() error{listEntries}
	if contended {
		parts = append(parts, listClaims, func() error { return d.countConsumers(ctx) })
	}
	if err := together(parts...); err != nil {
		return err
	}
	free := d.show(entries, claims, time.Since(begun))
	if free > 0 || contended || len(entries.names) == 0 {
		return nil
	}
	if err := listClaims(); err != nil {
		return err
	}
	d.show(entries, claims, time.Since(begun))
	return nil
}

// show makes a listing of the entries that nobody has, as far as that is known,
// and tells how many there are.
func (d *dispatcher) show(entries, claims dir, took time.Duration) (free int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	received := d.received()
	for _, name := range claims.names {
		if !d.out[name] && !received[name] {
			d.contended = contendedFor
		}
	}
	names := slices.DeleteFunc(unclaimed(entries.names, claims.names), func(name string) bool {
		return d.out[name] || received[name] && claims.changed == nil // listed, a claim that is not there has ended
	})
	d.listing = listing{
		number: d.listing.number + 1, names: names, length: len(names), took: took,
		entries: entries.changed, claims: claims.changed, partial: claims.changed == nil && len(entries.names) > 0,
	}
	return len(names)
}

// dir is a directory as it was listed and watched.
type dir struct {
	names   []string
	changed <-chan struct{}
}

// watch lists one of the queue's directories, which it makes if need be.
func (d *dispatcher) watch(ctx context.Context, path string) (dir, error) {
	for {
		names, _, changed, err := d.client.WatchChildren(ctx, path)
		if !errors.Is(err, coord.ErrNoNode) {
			return dir{names, changed}, err
		}
		if err := d.ensure(ctx); err != nil {
			return dir{}, err
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
