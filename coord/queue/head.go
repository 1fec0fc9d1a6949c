package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
)

// batch is how many items are handed out of one listing before it is made
// anew, and so how many an item of higher priority may have to wait for.
const batch = 32

// head is the listing of the queue's head that the consumers of this object
// share.
type head struct {
	turn   sync.Mutex // guards the rest; nobody does I/O with it
	names  []string   // not handed out yet, in order
	left   int        // to hand out before the next listing
	others int        // items in the hands of other consumers
}

// next returns the name of an item to try, and waits until there is one. A
// consumer alone gets them in order. Consumers beside each other spread over as
// many items as there are consumers busy, so that they seldom try the same.
func (q *Queue) next(ctx context.Context) (string, error) {
	for {
		if name, ok := q.head.pop(); ok {
			return name, nil
		}
		changed, err := q.look(ctx)
		if err != nil {
			return "", err
		}
		if changed == nil {
			continue
		}
		if err := changed.wait(ctx); err != nil {
			return "", err
		}
	}
}

func (h *head) pop() (string, bool) {
	h.turn.Lock()
	defer h.turn.Unlock()
	if len(h.names) == 0 || h.left == 0 {
		return "", false
	}
	at := rand.IntN(min(h.others+1, len(h.names)))
	name := h.names[at]
	h.names = slices.Delete(h.names, at, at+1)
	h.left--
	return name, true
}

func (h *head) set(names []string, others int) {
	h.turn.Lock()
	defer h.turn.Unlock()
	h.names, h.left, h.others = names, batch, others
}

// change tells when a queue without an item to try may have one.
type change struct{ entries, taken <-chan struct{} }

func (c *change) wait(ctx context.Context) error {
	select {
	case <-c.entries:
	case <-c.taken:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// look lists the queue. When nothing is to be had, it returns what to wait for;
// the listing it judged by is the one the watches stand on.
func (q *Queue) look(ctx context.Context) (*change, error) {
	names, err := q.list(ctx)
	if err != nil || len(names) > 0 {
		return nil, err
	}
	entries, _, newEntries, err := q.client.WatchChildren(ctx, q.entries())
	if errors.Is(err, coord.ErrNoNode) {
		return nil, q.ensure(ctx)
	}
	if err != nil {
		return nil, err
	}
	taken, _, freed, err := q.client.WatchChildren(ctx, q.taken())
	if errors.Is(err, coord.ErrNoNode) {
		return nil, q.ensure(ctx)
	}
	if err != nil {
		return nil, err
	}
	if names := available(entries, taken); len(names) > 0 {
		q.head.set(names, q.others(taken))
		return nil, nil
	}
	return &change{newEntries, freed}, nil
}

// list reads the entries and those taken, in one round trip, and returns the
// names of the others in order.
func (q *Queue) list(ctx context.Context) ([]string, error) {
	var taken []string
	var failed error
	var listing sync.WaitGroup
	listing.Go(func() { taken, failed = q.client.Children(ctx, q.taken()) })
	entries, err := q.client.Children(ctx, q.entries())
	listing.Wait()
	if errors.Is(err, coord.ErrNoNode) || errors.Is(failed, coord.ErrNoNode) {
		return nil, nil
	}
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	names := available(entries, taken)
	q.head.set(slices.Clone(names), q.others(taken))
	return names, nil
}

// others counts the items taken by other consumers than this object's.
func (q *Queue) others(taken []string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, len(taken)-len(q.live))
}

// available returns the entries nobody has taken, in order: by priority, then
// by age. Names of another shape are not entries.
func available(entries, taken []string) []string {
	held := make(map[string]bool, len(taken))
	for _, name := range taken {
		held[name] = true
	}
	free := make([]string, 0, len(entries))
	for _, name := range entries {
		if isEntry(name) && !held[name] {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	return free
}

const (
	prefix     = "entry-"
	nameLength = len("entry-000-0000000000")
)

func isEntry(name string) bool {
	if len(name) != nameLength || name[:len(prefix)] != prefix || name[9] != '-' {
		return false
	}
	for i := len(prefix); i < len(name); i++ {
		if i != 9 && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return true
}

func priority(name string) int {
	p, _ := strconv.Atoi(name[len(prefix) : len(prefix)+3])
	return p
}
