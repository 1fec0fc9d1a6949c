package znode

import (
	"slices"
	"sync"
	"time"
)

// How long a node goes without a watch after it was seen: a node that is gone
// sooner saves the request, and nothing is missed, since setting the watch
// reads the node. The longer one is for a node that will be seen again before
// its owner is granted anything.
const (
	watchDelay = 20 * time.Millisecond
	watchLater = 250 * time.Millisecond
	watchPause = time.Millisecond // from one round of due nodes to the next
)

// firsts are the nodes of a client that get their first watch if they last.
// Thousands of them share one timer.
type firsts struct {
	mu    sync.Mutex
	began time.Time     // what due times count from
	soon  queue         // after watchDelay each
	later queue         // after watchLater each
	stale int           // how many entries no longer count
	next  time.Duration // when the timer fires, or 0
	timer *time.Timer
}

// first is a node, and when it was to be watched. The entry counts if the node
// is still due at that time.
type first struct {
	node *Node
	due  time.Duration
}

// queue is in the order of due times.
type queue []first

func (w first) isStale() bool { return w.node.due != w.due }

// take takes out the nodes that are due by now.
func (q *queue) take(now time.Duration) (due []*Node) {
	n := 0
	for n < len(*q) && (*q)[n].due <= now {
		if w := (*q)[n]; !w.isStale() {
			w.node.due = 0
			due = append(due, w.node)
		}
		n++
	}
	*q = slices.Delete(*q, 0, n)
	if len(*q) == 0 {
		*q = nil // it may have been long
	}
	return due
}

// add has the node watched after a delay.
func (f *firsts) add(n *Node, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(n, delay)
}

// move has a node that is due watched after a delay from now.
func (f *firsts) move(n *Node, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.due != 0 {
		f.stale++
		f.put(n, delay)
	}
}

// drop has the node not watched.
func (f *firsts) drop(n *Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.due != 0 {
		n.due = 0
		f.stale++
	}
	if f.stale > (len(f.soon)+len(f.later))/2 {
		f.tidy()
	}
}

// tidy drops the entries that no longer count; f.mu is held.
func (f *firsts) tidy() {
	f.soon, f.later = slices.DeleteFunc(f.soon, first.isStale), slices.DeleteFunc(f.later, first.isStale)
	f.stale = 0
}

// put is add; f.mu is held.
func (f *firsts) put(n *Node, delay time.Duration) {
	if f.began.IsZero() {
		f.began = time.Now()
	}
	n.due = time.Since(f.began) + delay
	if delay == watchDelay {
		f.soon = append(f.soon, first{n, n.due})
	} else {
		f.later = append(f.later, first{n, n.due})
	}
	f.wakeAt(n.due)
}

// wakeAt has the timer fire at a time, if that is sooner; f.mu is held.
func (f *firsts) wakeAt(due time.Duration) {
	if f.next != 0 && f.next <= due {
		return
	}
	f.next = due
	in := due - time.Since(f.began)
	if f.timer == nil {
		f.timer = time.AfterFunc(in, f.watch)
	} else {
		f.timer.Reset(in)
	}
}

// watch watches the nodes that are due.
func (f *firsts) watch() {
	f.mu.Lock()
	f.next = 0
	f.tidy()
	now := time.Since(f.began)
	nodes := append(f.soon.take(now), f.later.take(now)...)
	for _, queue := range []queue{f.soon, f.later} {
		if len(queue) > 0 {
			f.wakeAt(max(queue[0].due, now+watchPause))
		}
	}
	f.mu.Unlock()
	for _, n := range nodes {
		n.WatchOnce()
	}
}
