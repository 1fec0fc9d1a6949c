package queue

import (
	"context"
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
	d.items[item] = nil
	return nil
}

// park keeps an item's claim for as long as nobody shall have it.
func (d *dispatcher) park(item *Item, delay time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	timer, known := d.items[item]
	if !known || timer != nil {
		return ErrStale
	}
	d.items[item] = time.AfterFunc(delay, func() {
		_ = item.hold.Release(context.Background()) // goes on by itself until it is done
		d.settled(item, true)
	})
	return nil
}

// isParked tells whether the item was given back with a delay.
func (d *dispatcher) isParked(item *Item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.items[item] != nil
}

// settled forgets an item whose claim has ended, and has the receivers look
// again if it may have gone back to the queue.
func (d *dispatcher) settled(item *Item, back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if item.hold.Err() != nil {
		if timer := d.items[item]; timer != nil {
			timer.Stop()
		}
		delete(d.items, item)
	}
	if back {
		d.recall()
	}
}

// received are the names of the items in this object's hands; d.mu is held.
func (d *dispatcher) received() map[string]bool {
	names := map[string]bool{}
	for item, timer := range d.items {
		if item.hold.Err() == nil {
			names[item.name] = true
		} else if timer == nil {
			delete(d.items, item) // lost; its receiver need not come back with it
		}
	}
	return names
}

// tryAgain makes an item a candidate again that was denied.
func (d *dispatcher) tryAgain(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.out, name)
	d.denied--
	d.recall()
}

// overtaken notes that this object put an item of this priority.
func (d *dispatcher) overtaken(by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.listing.names); n > 0 && by < priority(d.listing.names[n-1]) {
		d.listing.discard()
	}
}

// recall has all receivers of this object look again: one may have found
// nothing only because another had the item. d.mu is held.
func (d *dispatcher) recall() {
	d.listing.discard()
	close(d.returned)
	d.returned = make(chan struct{})
}

// close ends the handing out: the gate stays shut. It returns what is to be
// released. It is called when the receivers' contexts have ended.
func (d *dispatcher) close() (holds []*coord.Hold) {
	d.shut.Do(func() { d.gate <- struct{}{} })
	if d.census.own != nil {
		holds = append(holds, d.census.own)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for item, timer := range d.items {
		if timer != nil {
			timer.Stop()
		}
		holds = append(holds, item.hold)
	}
	d.items = nil
	return holds
}
