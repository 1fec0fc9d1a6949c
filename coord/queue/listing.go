package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// list makes a listing. It asks for the claims and the other consumers only if
// they are needed to tell what is free: a consumer alone knows its own claims.
func (q *Queue) list(ctx context.Context) error {
	h := &q.head
	h.mu.Lock()
	crowded := h.crowded > 0
	h.misses = 0
	h.mu.Unlock()
	begun := time.Now()
	var entries, taken dir
	var failures [3]error
	var listing sync.WaitGroup
	listing.Go(func() { entries, failures[0] = q.watch(ctx, q.entries()) })
	if crowded {
		listing.Go(func() { taken, failures[1] = q.watch(ctx, q.taken()) })
		listing.Go(func() { failures[2] = q.census(ctx) })
	}
	listing.Wait()
	if err := errors.Join(failures[:]...); err != nil {
		return err
	}
	free, others := q.free(entries, taken)
	if !crowded && len(free) == 0 && len(entries.names) > 0 {
		var err error
		if taken, err = q.watch(ctx, q.taken()); err != nil {
			return err
		}
		free, others = q.free(entries, taken)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names, h.fresh, h.listing, h.length, h.took = free, true, h.listing+1, len(free), time.Since(begun)
	h.changed, h.freed, h.blind = entries.changed, taken.changed, taken.changed == nil && len(entries.names) > 0
	if others > 0 {
		h.crowded = crowdedFor
	}
	return nil
}

// dir is a directory as it was listed and watched.
type dir struct {
	names   []string
	changed <-chan struct{} // nil: it was not listed
}

// watch lists one of the queue's directories, which it makes if need be.
func (q *Queue) watch(ctx context.Context, path string) (dir, error) {
	for {
		names, _, changed, err := q.client.WatchChildren(ctx, path)
		if !errors.Is(err, coord.ErrNoNode) {
			return dir{names, changed}, err
		}
		if err := q.ensure(ctx); err != nil {
			return dir{}, err
		}
	}
}

// free returns the entries that nobody has, as far as it is known, in order: by
// priority, then by age; and how many other consumers have.
func (q *Queue) free(entries, taken dir) (free []string, others int) {
	own := q.own()
	held := make(map[string]bool, len(taken.names))
	for _, name := range taken.names {
		held[name] = true
		if _, known := own[name]; !known {
			others++
		}
	}
	for _, name := range entries.names {
		received, known := own[name]
		// A claim of this object that is not among those listed has ended.
		if isEntry(name) && !held[name] && (!known || received && taken.changed != nil) {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	return free, others
}

// own are the items in this object's hands: true when received, false when on
// the way.
func (q *Queue) own() map[string]bool {
	own := map[string]bool{}
	q.mu.Lock()
	for item, timer := range q.live {
		if item.hold.Err() == nil {
			own[item.name] = true
		} else if timer == nil {
			delete(q.live, item) // lost; its receiver need not come back with it
		}
	}
	q.mu.Unlock()
	q.head.mu.Lock()
	for name := range q.head.trying {
		own[name] = false
	}
	for name, until := range q.head.barred {
		if time.Now().Before(until) {
			own[name] = false
		} else {
			delete(q.head.barred, name)
		}
	}
	q.head.mu.Unlock()
	return own
}
