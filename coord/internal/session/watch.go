package session

import (
	"bytes"
	"context"
	"errors"
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

// setting is the request that sets a watch.
type setting struct {
	over chan struct{}
	err  error // why it has failed; set when it is over
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

// Data reads a node and watches it: one request, or none when it is watched
// already. For a missing node it fails with [zk.ErrNoNode] and leaves no watch.
// A node whose data may not be read is watched without its data, by the changes
// of its parent's children.
func (ws *Watches) Data(ctx context.Context, path string) (*Watch, error) {
	return ws.Await(ctx, ws.Begin(Data, path))
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
	if w := ws.set[kind][path]; w != nil && w.setting == nil {
		return w
	}
	return nil
}

// Adopt is Get for a caller that keeps its string of the path: from now on the
// watch keeps the same.
func (ws *Watches) Adopt(kind Kind, path string) *Watch {
	w := ws.Get(kind, path)
	if w == nil {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.set[kind][path] == w {
		delete(ws.set[kind], path) // with the key's string
		ws.set[kind][path] = w
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path = path
	return w
}

// Attempt is a watch that is set, or is being set.
type Attempt struct {
	key     armed
	watch   *Watch
	setting *setting
	shared  bool
}

// Begin returns the watch if it is set or being set, or begins to set it.
// Watches that are begun together travel together.
func (ws *Watches) Begin(kind Kind, path string) Attempt {
	key := armed{path, kind}
	ws.mu.Lock()
	if w, shared := ws.set[kind][path]; shared {
		defer ws.mu.Unlock()
		return Attempt{key, w, w.setting, true}
	}
	w := &Watch{path: path, setting: &setting{over: make(chan struct{})}}
	ws.set[kind][path] = w
	a := Attempt{key, w, w.setting, false}
	ws.mu.Unlock()
	if kind == Data {
		ws.arming.add(func() bool { return ws.begin(a, ws.arming.over) })
	} else { // Children may stand for an unreadable node: see armByParent
		ws.begin(a, func() {})
	}
	return a
}

// begin asks for the watch, and reports whether that is under way; then it
// calls over at the end. It takes a goroutine only if the request cannot be
// sent now, or if one more has to follow. The attempt is not bound to the
// context of the first caller, since others may wait for the same watch by now.
func (ws *Watches) begin(a Attempt, over func()) bool {
	background := func(arm func(a Attempt) error) error {
		return ws.s.Go(func() {
			ws.end(a, arm(a))
			over()
		})
	}
	c, r := ws.reading(a)
	told := c.Told
	c.Told = func(err error) {
		told(err)
		err = ws.answered(a, c.Value, ws.s.translate(err))
		if isUnreadable(a, err) {
			if err = background(ws.armByParent); err == nil {
				return
			}
		}
		ws.end(a, err)
		over()
	}
	r.Caller, r.Yields = c, true
	if ws.s.ask(r, wire.Reading(a.key.path, true)) == nil {
		return true
	}
	err := background(ws.arm)
	if err != nil {
		ws.end(a, err)
	}
	return err == nil
}

// end ends an attempt.
func (ws *Watches) end(a Attempt, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err != nil && ws.set[a.key.kind][a.key.path] == a.watch {
		delete(ws.set[a.key.kind], a.key.path)
	}
	a.setting.err, a.watch.setting = err, nil
	close(a.setting.over)
}

// Await waits until the watch is set. A failed attempt that another caller
// began may be older than the call: the node may be there by now. So Await
// makes another attempt, which begins after the failure and thus after the
// call.
func (ws *Watches) Await(ctx context.Context, a Attempt) (*Watch, error) {
	if a.setting == nil {
		return a.watch, nil
	}
	if err := await(ctx, ws.s, a.setting.over); err != nil {
		return nil, err
	}
	if a.setting.err != nil && a.shared {
		again := ws.Begin(a.key.kind, a.key.path)
		again.shared = false
		return ws.Await(ctx, again)
	}
	return a.watch, a.setting.err
}

// arm sets the watch as soon as the request can be sent.
func (ws *Watches) arm(a Attempt) error {
	c, r := ws.reading(a)
	stat, err := answer(context.Background(), ws.s, c, r, wire.Reading(a.key.path, true))
	if err = ws.answered(a, stat, err); isUnreadable(a, err) {
		return ws.armByParent(a)
	}
	return err
}

func isUnreadable(a Attempt, err error) bool {
	return errors.Is(err, zk.ErrNoAuth) && a.key.kind == Data
}

// reading is the request that reads and watches.
func (ws *Watches) reading(a Attempt) (*wire.Call[wire.Stat], wire.Request) {
	w := a.watch
	c := &wire.Call[wire.Stat]{Fields: func(d *wire.Decoder) wire.Stat {
		switch a.key.kind {
		case Data:
			w.Data = ws.share(d.Buffer())
		case Children:
			names := d.Names()
			w.children = &names
		}
		return d.Stat()
	}, Told: func(err error) {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		w.armed = err == nil || a.key.kind == Absence && err == zk.ErrNoNode
	}}
	return c, wire.Request{Op: [...]wire.OpCode{Data: wire.OpGetData, Children: wire.OpGetChildren2, Absence: wire.OpExists}[a.key.kind]}
}

// answered keeps what the answer says, and says whether the watch is set.
func (ws *Watches) answered(a Attempt, stat wire.Stat, err error) error {
	a.watch.Stat = stat
	switch {
	case a.key.kind != Absence:
		return err
	case err == nil:
		return zk.ErrNodeExists
	case err == zk.ErrNoNode:
		return nil
	}
	return err
}

// share returns the data that were read before if these are the same. The nodes
// of a client's claims in one line have the same data.
func (ws *Watches) share(data []byte) []byte {
	const short = 1 << 8
	if len(data) == 0 || len(data) > short {
		return data
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !bytes.Equal(data, ws.last) {
		ws.last = data
	}
	return ws.last
}

// armByParent watches a node whose data may not be read. A server with the fix
// of CVE-2024-23944 sends no event of such a node to its watchers (exists
// included), so its parent's list of children is watched instead: each change
// there fires the watch, and the next look finds out.
func (ws *Watches) armByParent(a Attempt) error {
	siblings, err := ws.Await(context.Background(), ws.Begin(Children, Parent(a.key.path)))
	if err != nil {
		return err
	}
	node, err := ws.s.Exists(context.Background(), a.key.path)
	if err == nil && !node.Exists {
		err = zk.ErrNoNode
	}
	if err != nil {
		return err
	}
	a.watch.Stat = node.Stat
	siblings.OnFire(func(fired Fired) { ws.fire(a.key, fired) })
	return nil
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
