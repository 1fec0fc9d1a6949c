// Package dispatch chooses which items of a queue its receivers try to get. To
// it, an item is a node with a name and a version; its caller claims and
// removes items ([Claimer]).
package dispatch

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// Dispatcher hands out the items at the front of the queue to the receivers of
// one queue object. A receiver takes a candidate, reads it, tries to claim or
// to remove it, and reports the outcome.
//
// A listing costs as much as the queue is long, so it serves for many items.
// While the queue changes, a new listing takes a credit, which grows with the
// items handed out and with time. The process watches and shares the listing:
// while nothing has changed, looking again costs nothing.
type Dispatcher struct {
	at      store.Nodes
	limit   int           // of deliveries before an item is dead; 0 = none
	backoff time.Duration // after the first delivery in vain
	has     func(name string) bool
	gate    chan struct{} // held to list and to hand out; a channel: waiting for it ends with a context
	shut    sync.Once

	mu         sync.Mutex
	receiving  int            // how many receivers are here
	consumers  *consumerCount // while there are receivers
	names      []string       // listed and not handed out yet, in order
	length     int            // of the listing
	version    [2]int64       // of the entries and of the claims, as listed
	took       time.Duration
	misses     int     // candidates that others had taken, since the listing
	credit     float64 // in listings
	earned     time.Time
	share      slice
	contended  int                    // above 0: there are other consumers; counts down with each request
	claimBytes int                    // bytes of each claim in a request, beside the item and its name
	room       int                    // the most bytes of a request to claim items
	size       int                    // bytes of it that an item of the last batch took
	out        map[string]error       // handed out and not reported yet (nil), or why passed over
	returned   chan struct{}          // closed when an item comes back
	ahead      map[string]store.Entry // read ahead
}

const (
	// A new listing is earned by handing out itemsPerListing items, or
	// 1/partPerListing of the queue if that is more, or by timePerListing times
	// the time that a listing takes.
	itemsPerListing = 8
	partPerListing  = 16
	timePerListing  = 50

	shortQueue = 256 // up to this length, credit for several listings is kept
	mostCredit = 4

	// contendedFor is how many times in a row a consumer obtains items without
	// a sign of another before it takes itself to be alone.
	contendedFor = 64

	// batchBytes bounds a request to claim many items, and packetBytes is the
	// part of it without the items.
	batchBytes, packetBytes = 1 << 20, 64

	// deniedFor is how long an item that this client has no permission for is
	// passed over.
	deniedFor = 10 * time.Second
)

// ErrEmpty: all items are taken, or there is none.
var ErrEmpty = errors.New("no item available")

// ErrAllDenied: this client may read or write none of the items.
var ErrAllDenied = fmt.Errorf("%w: this client has no permission for those that are left: %w", ErrEmpty,
	coord.ErrNoAuth)

// ErrMissed: another consumer was faster.
var ErrMissed = errors.New("another consumer has the item")

// ErrDenied: this client may not read or write the item.
var ErrDenied = errors.New("no permission for the item")

// errNotTried: the item is still available.
var errNotTried = errors.New("not tried")

// Config is what a [Dispatcher] needs.
type Config struct {
	Nodes   store.Nodes
	Limit   int                    // of deliveries before an item is dead; 0 = none
	Backoff time.Duration          // after the first delivery in vain
	Has     func(name string) bool // whether the caller has the item
}

// New returns the dispatcher of a queue object. It does no I/O.
func New(c Config) *Dispatcher {
	client := c.Nodes.Client.Info()
	room := min(client.MaxPacket, batchBytes) - packetBytes
	return &Dispatcher{
		at: c.Nodes, limit: c.Limit, backoff: c.Backoff, has: c.Has, gate: make(chan struct{}, 1),
		credit: mostCredit, claimBytes: 3*len(client.Chroot) + 2*len(client.Identity) + 256, room: room, size: room,
		out: map[string]error{}, returned: make(chan struct{}),
	}
}

// Added notes that this object put an item of this priority.
func (d *Dispatcher) Added(priority int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.names); n > 0 && priority < store.Priority(d.names[n-1]) {
		d.names = nil
	}
}

// Returned notes that an item that this object had may be in the queue again.
func (d *Dispatcher) Returned() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recall()
}

// recall has all receivers of this object look again: one may have found
// nothing only because another had the item. d.mu is held.
func (d *Dispatcher) recall() {
	d.names = nil
	close(d.returned)
	d.returned = make(chan struct{})
}

// Close ends the handing out: the gate stays shut. It is called when the
// receivers' contexts have ended.
func (d *Dispatcher) Close() {
	d.shut.Do(func() { d.gate <- struct{}{} })
}
