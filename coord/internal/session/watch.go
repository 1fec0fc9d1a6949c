package session

import (
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Fired is what used a watch up.
type Fired uint8

// Pending: nothing yet. Stale: the connection was lost, so nothing is known.
// Changed: the data, or the list of children, changed. Deleted: the node is
// gone.
const (
	Pending Fired = iota
	Stale
	Changed
	Deleted
)

// Watch is a node as it was read, with the one-shot watch that the reading
// left. All that watch the same path share it.
type Watch struct {
	Data []byte
	Stat wire.Stat

	children *[]string // of a watch on these

	setting *setting // or nil once the fields above are set; Watches.mu guards it

	mu     sync.Mutex
	path   string // one for all that watch it
	armed  bool   // the server has it; Watches.mu guards it
	fired  Fired
	hook   func(Fired) // calls all that [Watch.OnFire] was given; nil once fired
	wakers []Waker     // nil once fired
}

// Path returns the path of the node.
func (w *Watch) Path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.path
}

// Children returns the names that were listed.
func (w *Watch) Children() []string { return *w.children }

// Tell has the waker woken when the watch fires, or now if it has.
func (w *Watch) Tell(k Waker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired != Pending {
		k.Wake()
		return
	}
	w.wakers = append(w.wakers, k)
}

// Untell undoes one Tell.
func (w *Watch) Untell(k Waker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := slices.Index(w.wakers, k); at >= 0 {
		w.wakers = slices.Delete(w.wakers, at, at+1)
	}
}

// Fired returns what has fired the watch.
func (w *Watch) Fired() Fired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired
}

// Kind is the watched aspect of a node.
type Kind uint8

// Data: a node that is there, until its data change or it goes. Children: the
// list of its children. Absence: a node that is not there, until it is;
// watching one that is there fails with [zk.ErrNodeExists].
const (
	Data Kind = iota
	Children
	Absence
	kinds
)

// Watches are what a session watches.
type Watches struct {
	s      *Session
	arming pipeline // sets watches on nodes

	mu   sync.Mutex
	set  [kinds]map[string]*Watch // by path
	last []byte                   // the short data that were read last
}

// armed names a watch.
type armed struct {
	path string
	kind Kind
}

// Get returns the watch that is set, or nil.
func (ws *Watches) Get(kind Kind, path string) *Watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.get(kind, path)
}

func (ws *Watches) get(kind Kind, path string) *Watch {
	if w := ws.set[kind][path]; w != nil && w.setting == nil {
		return w
	}
	return nil
}

// Adopt is Get for a caller that keeps its string of the path: from now on the
// watch keeps the same.
func (ws *Watches) Adopt(kind Kind, path string) *Watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.get(kind, path)
	if w == nil {
		return nil
	}
	delete(ws.set[kind], path) // with the key's string
	ws.set[kind][path] = w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path = path
	return w
}

// tell fires the watches an event is about.
func (ws *Watches) tell(event zk.EventType, path string) {
	fired := Changed
	if event == zk.EventNodeDeleted {
		fired = Deleted
	}
	if event != zk.EventNodeChildrenChanged {
		ws.fire(armed{path, Data}, fired)
		ws.fire(armed{path, Absence}, fired)
	}
	if event == zk.EventNodeChildrenChanged || event == zk.EventNodeDeleted {
		ws.fire(armed{path, Children}, fired)
	}
}

// lose fires the watches that the server of the lost connection had.
func (ws *Watches) lose() {
	ws.mu.Lock()
	var lost []armed
	for kind, set := range ws.set {
		for path, w := range set {
			if w.armed {
				lost = append(lost, armed{path, Kind(kind)})
			}
		}
	}
	ws.mu.Unlock()
	for _, key := range lost {
		ws.fire(key, Stale)
	}
}

func (ws *Watches) fire(key armed, fired Fired) {
	ws.mu.Lock()
	w := ws.set[key.kind][key.path]
	delete(ws.set[key.kind], key.path)
	if fired == Deleted && w != nil && !w.armed { // the event may be about an earlier node of this path
		fired = Changed
	}
	ws.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	hook, wakers := w.hook, w.wakers
	w.hook, w.wakers, w.fired = nil, nil, fired
	w.mu.Unlock()
	for _, k := range wakers {
		k.Wake()
	}
	if hook != nil {
		hook(fired)
	}
}

// OnFire calls hook once when w fires, or immediately if it has fired already.
// The hook runs in the goroutine that reads: it must not block.
func (w *Watch) OnFire(hook func(Fired)) {
	w.mu.Lock()
	fired := w.fired
	switch first := w.hook; {
	case fired != Pending:
	case first == nil:
		w.hook = hook
	default:
		w.hook = func(fired Fired) { first(fired); hook(fired) }
	}
	w.mu.Unlock()
	if fired != Pending {
		hook(fired)
	}
}
