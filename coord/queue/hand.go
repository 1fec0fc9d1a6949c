package queue

import (
	"context"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// keep remembers an item in a receiver's hands, unless the queue was closed.
func (d *dispatcher) keep(item *Item) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.items == nil {
		item.hold.Abandon()
		return ErrClosed
	}
	d.items[item.name] = item
	return nil
}

// park keeps an item's claim until the delay is over.
func (d *dispatcher) park(item *Item, delay time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.items[item.name] != item || item.parked != nil {
		return ErrStale
	}
	item.parked = time.AfterFunc(delay, func() {
		_ = item.hold.Release(context.Background()) // goes on by itself until it is done
		d.settled(item, true)
	})
	return nil
}

// isParked reports whether the item was given back with a delay.
func (d *dispatcher) isParked(item *Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return item.parked != nil
}

// settled forgets an item whose claim has ended, and has the receivers look
// again if it may have gone back to the queue.
func (d *dispatcher) settled(item *Item, back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if item.hold.Err() != nil {
		d.forget(item)
	}
	if back {
		d.recall()
	}
}

// isLost reports whether an item's claim has ended, and forgets such an item,
// since its receiver need not come back with it; d.mu is held.
func (d *dispatcher) isLost(item *Item) bool {
	if item.hold.Err() == nil {
		return false
	}
	d.forget(item)
	return true
}

// left returns the items whose claims have not ended since they were granted,
// or if none is left, why the first item's claim has ended.
func (d *dispatcher) left(items []*Item) ([]*Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := items[0]
	if items = slices.DeleteFunc(items, d.isLost); len(items) == 0 {
		return nil, first.hold.Err()
	}
	return items, nil
}

// forget drops an item whose claim has ended; d.mu is held.
func (d *dispatcher) forget(item *Item) {
	if item.parked != nil {
		item.parked.Stop()
	}
	if d.items[item.name] == item {
		delete(d.items, item.name)
	}
}

// overtaken notes that this object put an item of this priority.
func (d *dispatcher) overtaken(by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.names); n > 0 && by < priority(d.names[n-1]) {
		d.names = nil
	}
}

// recall has all receivers of this object look again: one may have found
// nothing only because another had the item. d.mu is held.
func (d *dispatcher) recall() {
	d.names = nil
	close(d.returned)
	d.returned = make(chan struct{})
}

// close ends the handing out: the gate stays shut. It returns the claims to
// release. It is called when the receivers' contexts have ended.
func (d *dispatcher) close() (holds []*coord.Hold) {
	d.shut.Do(func() { d.gate <- struct{}{} })
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range d.items {
		if item.parked != nil {
			item.parked.Stop()
		}
		holds = append(holds, item.hold)
	}
	d.items = nil
	return holds
}
