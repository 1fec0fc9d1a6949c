package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// A listing is used for many items, since it costs as much as the queue is
// long. While the queue changes, it is made anew out of a credit, which grows
// with the items handed out, by one listing for every eight of them or for a
// sixteenth of the queue, and with time, so that it takes up a fiftieth of it
// at most.
const (
	itemsPerListing = 8
	partPerListing  = 16
	timePerListing  = 50
	shortQueue      = 256 // up to here, credit for several listings is kept
	mostCredit      = 4
)

// crowdedFor is how many items a consumer obtains without a sign of another
// before it takes itself to be alone.
const crowdedFor = 64

// head is the front of the queue as the consumers of this object saw it last.
// They share it; a candidate is handed out to one of them.
type head struct {
	gate chan struct{} // held by whoever lists; a channel, since waiting for it ends with a context
	self *coord.Hold   // the own node among the peers'; guarded by the gate

	mu      sync.Mutex
	names   []string             // candidates, in order
	fresh   bool                 // none of this listing was handed out
	trying  map[string]int       // handed out, and neither received nor missed yet; the listing its entry was read after
	changed <-chan struct{}      // the entries are not those listed any more; nil: list in any case
	freed   <-chan struct{}      // nor the claims; nil: they were not asked for
	blind   bool                 // they were not, though they could end
	back    chan struct{}        // closed when this object gave something back
	listing int                  // how many there were
	length  int                  // of the listing
	took    time.Duration        // the listing
	credit  float64              // in listings
	charged time.Time            // when credit was last counted
	misses  int                  // candidates of this listing that others had
	crowded int                  // others consume, too; counts down with every item obtained
	barred  map[string]time.Time // candidates that may not be read or written; tried again from then on
	peers   peers
	ahead   map[string]early // read before it was asked for; one at most
	picked  time.Time        // the last candidate
}

// peers are the objects that consume from the queue, this one included.
type peers struct {
	rank, number int
	changed      <-chan struct{} // nil: not known
}

// next returns the name of an item to try, if there is one.
func (q *Queue) next(ctx context.Context) (name string, found bool, err error) {
	leave, err := q.head.enter(ctx)
	if err != nil {
		return "", false, err
	}
	defer leave()
	for {
		if name, ok := q.head.pick(); ok {
			return name, true, nil
		}
		if q.head.current() {
			return "", false, nil
		}
		if err := q.list(ctx); err != nil {
			return "", false, err
		}
	}
}

func (h *head) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.gate <- struct{}{}:
		return func() { <-h.gate }, nil
	case <-ctx.Done():
		return nil, coord.Ended(ctx)
	}
}

// pick hands out a candidate, unless a new listing is due.
func (h *head) pick() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.earn()
	at := h.choose()
	if at < 0 {
		return "", false
	}
	name := h.names[at]
	if at == 0 {
		h.names = h.names[1:]
	} else {
		h.names = slices.Delete(h.names, at, at+1)
	}
	h.trying[name], h.fresh, h.picked = h.listing, false, time.Now()
	return name, true
}

// choose returns the index of the candidate to try, or -1. A consumer alone
// takes them in order. Those beside each other share the first ones by their
// sequence numbers, so that they seldom try the same; whoever finds none of its
// share there takes one of the others'.
func (h *head) choose() int {
	if len(h.names) == 0 || h.changed == nil {
		return -1
	}
	outdated := !h.fresh && (isClosed(h.changed) || isClosed(h.freed))
	if outdated && (h.credit >= 1 || h.misses > 2) {
		h.credit = max(0, h.credit-1)
		return -1
	}
	if h.crowded == 0 || h.peers.number < 2 {
		return 0
	}
	front := h.front()
	for i, name := range front {
		if sequence(name)%h.peers.number == h.peers.rank {
			return i
		}
	}
	if outdated {
		return -1
	}
	return rand.IntN(min(h.peers.number, len(front)))
}

// front is what consumers beside each other choose from: the first candidates
// of the same priority.
func (h *head) front() []string {
	n := min(len(h.names), max(itemsPerListing*h.peers.number, h.length/partPerListing))
	front := h.names[:n]
	if other := slices.IndexFunc(front, func(name string) bool { return priority(name) != priority(front[0]) }); other > 0 {
		front = front[:other]
	}
	return front
}

// earn counts the credit for a candidate and for the time since the last one.
func (h *head) earn() {
	now, limit := time.Now(), 1.0
	if h.length <= shortQueue {
		limit = mostCredit
	}
	h.credit += 1 / float64(max(itemsPerListing, h.length/partPerListing))
	h.credit += float64(now.Sub(h.charged)) / float64(timePerListing*max(h.took, time.Millisecond))
	h.credit, h.charged = min(h.credit, limit), now
}

// current tells whether the listing still shows the queue, and whether it would
// be noticed if it did not.
func (h *head) current() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed != nil && !isClosed(h.changed) && !isClosed(h.freed) && !h.blind
}

// quick is how soon after the last candidate the next is asked for by consumers
// worth reading ahead for.
const quick = 20 * time.Millisecond

// early is an entry that was read ahead, and the listing it was read after.
type early struct {
	entry
	listing int
}

// likely returns the candidate that will probably be asked for next, if those
// who ask do so in quick succession, and the number of its listing.
func (h *head) likely() (name string, listing int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.picked) > quick || len(h.ahead) > 0 {
		return "", 0, false
	}
	fresh, credit := h.fresh, h.credit
	at := h.choose()
	h.fresh, h.credit = fresh, credit
	if at < 0 {
		return "", 0, false
	}
	return h.names[at], h.listing, true
}

// readAhead returns what was read of an entry before it was asked for.
func (h *head) readAhead(name string) (entry, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, known := h.ahead[name]
	clear(h.ahead)
	if known {
		h.trying[name] = e.listing
	}
	return e.entry, known
}

func (h *head) keepAhead(e entry, listing int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead[e.name] = early{e, listing}
}

// obtained, missed and failed say what became of a candidate that was tried.
func (h *head) obtained(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trying, name)
	h.crowded = max(0, h.crowded-1)
}

func (h *head) missed(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.trying[name] != h.listing:
		h.recall() // it may have been delivered, and given back before the new listing
	case h.crowded == 0:
		h.changed = nil // ask for their claims, too
	}
	delete(h.trying, name)
	h.misses++
	h.crowded = crowdedFor
}

func (h *head) failed(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trying, name)
	h.recall()
}

// barredFor is how long a candidate that this client has no permission for is
// passed over before it is tried again.
const barredFor = 10 * time.Second

// bar passes a candidate over: it must not keep those behind it waiting.
func (h *head) bar(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trying, name)
	h.barred[name] = time.Now().Add(barredFor)
}

// bars tells whether there are candidates that are passed over.
func (h *head) bars() bool {
	_, barred := h.retry()
	return barred
}

// retry tells when a candidate that was passed over is to be tried again, if
// there is one.
func (h *head) retry() (at time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, next := range h.barred {
		if !ok || next.Before(at) {
			at, ok = next, true
		}
	}
	return at, ok
}

// overtaken notes that this object put an item of this priority.
func (h *head) overtaken(by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.names); n > 0 && by < priority(h.names[n-1]) {
		h.changed = nil
	}
}

// returned notes that this object gave an item back, and wakes those who wait.
func (h *head) returned() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recall()
}

// recall has everybody of this object look again, who may have found nothing
// only because of what one of them had in hand; h.mu is held.
func (h *head) recall() {
	h.changed = nil
	close(h.back)
	h.back = make(chan struct{})
}

// signals are what to wait for when there is no candidate. changed is nil when
// there is no reason to wait: another of this object may have listed anew since
// the caller found nothing.
func (h *head) signals() (changed, freed, back <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.names) > 0 || h.blind {
		return nil, nil, h.back
	}
	return h.changed, h.freed, h.back
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
