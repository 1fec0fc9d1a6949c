package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// hand is what the receivers of one [Queue] object have.
type hand struct {
	mu    sync.Mutex
	items map[string]*Item // by name; nil: closed
}

// keep remembers an item in a receiver's hands, unless the queue was closed.
func (h *hand) keep(item *Item) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.items == nil {
		item.hold.Abandon()
		return ErrClosed
	}
	h.items[item.name] = item
	return nil
}

// has reports whether an item is in this object's hands.
func (h *hand) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	item := h.items[name]
	return item != nil && !h.isLost(item)
}

// park keeps an item's claim until the delay is over.
func (q *Queue) park(item *Item, delay time.Duration) error {
	q.hand.mu.Lock()
	defer q.hand.mu.Unlock()
	if q.hand.items[item.name] != item || item.parked != nil {
		return ErrStale
	}
	item.parked = time.AfterFunc(delay, func() {
		_ = item.hold.Release(context.Background()) // goes on by itself until it is done
		q.settled(item, true)
	})
	return nil
}

// isParked reports whether the item was given back with a delay.
func (h *hand) isParked(item *Item) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return item.parked != nil
}

// settled forgets an item whose claim has ended, and has the receivers look
// again if it may have gone back to the queue.
func (q *Queue) settled(item *Item, back bool) {
	q.hand.mu.Lock()
	q.hand.isLost(item)
	q.hand.mu.Unlock()
	if back {
		q.dispatcher.Returned()
	}
}

// left returns the items whose claims have not ended since they were granted,
// or if none is left, why the first item's claim has ended.
func (h *hand) left(items []*Item) ([]*Item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := items[0]
	if items = slices.DeleteFunc(items, h.isLost); len(items) == 0 {
		return nil, first.hold.Err()
	}
	return items, nil
}

// isLost reports whether an item's claim has ended, and forgets such an item,
// since its receiver need not come back with it; h.mu is held.
func (h *hand) isLost(item *Item) bool {
	if item.hold.Err() == nil {
		return false
	}
	if item.parked != nil {
		item.parked.Stop()
	}
	if h.items[item.name] == item {
		delete(h.items, item.name)
	}
	return true
}

// close returns the claims to release.
func (h *hand) close() (holds []*coord.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, item := range h.items {
		if item.parked != nil {
			item.parked.Stop()
		}
		holds = append(holds, item.hold)
	}
	h.items = nil
	return holds
}
