package zkembed

// EventType is the kind of a watch event, with ZooKeeper's numbers.
type EventType int32

// The events that watches report.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// mode is a set of the ways in which one connection watches one path.
type mode uint8

const (
	oneShot mode = 1 << iota
	persistent
	recursive
)

// watchTable holds the watches of one kind: data or child watches.
type watchTable struct {
	paths map[string]map[*conn]mode
	conns map[*conn]map[string]struct{}
	deep  int // recursive watches: without any, ancestors need no look
}

func newWatchTable() *watchTable {
	return &watchTable{paths: map[string]map[*conn]mode{}, conns: map[*conn]map[string]struct{}{}}
}

func (w *watchTable) add(path string, c *conn, m mode) { w.set(path, c, w.paths[path][c]|m) }

// set replaces the modes; none means no watch.
func (w *watchTable) set(path string, c *conn, m mode) {
	w.deep += int(m&recursive)/int(recursive) - int(w.paths[path][c]&recursive)/int(recursive)
	if m == 0 {
		if delete(w.paths[path], c); len(w.paths[path]) == 0 {
			delete(w.paths, path)
		}
		if delete(w.conns[c], path); len(w.conns[c]) == 0 {
			delete(w.conns, c)
		}
		return
	}
	if w.paths[path] == nil {
		w.paths[path] = map[*conn]mode{}
	}
	if w.conns[c] == nil {
		w.conns[c] = map[string]struct{}{}
	}
	w.paths[path][c] = m
	w.conns[c][path] = struct{}{}
}

func (w *watchTable) drop(c *conn) {
	for path := range w.conns[c] {
		w.set(path, c, 0)
	}
}

func (w *watchTable) count() int {
	n := 0
	for _, paths := range w.conns {
		n += len(paths)
	}
	return n
}

// trigger calls emit once for every connection that watches for the event,
// and uses up the one-shot watches.
func (w *watchTable) trigger(path string, t EventType, emit func(*conn)) {
	told := map[*conn]bool{}
	for c, m := range w.paths[path] {
		if t == EventChildrenChanged && m&(oneShot|persistent) == 0 {
			continue
		}
		told[c] = true
		emit(c)
		if m&oneShot != 0 {
			w.set(path, c, m&^oneShot)
		}
	}
	if w.deep == 0 || t == EventChildrenChanged {
		return
	}
	for p := path; p != "/"; {
		p = parentOf(p)
		for c, m := range w.paths[p] {
			if m&recursive != 0 && !told[c] {
				told[c] = true
				emit(c)
			}
		}
	}
}

// watches are all the watches that look at one view of the tree.
type watches struct{ data, child *watchTable }

func newWatches() watches { return watches{newWatchTable(), newWatchTable()} }

func (w watches) drop(c *conn) {
	w.data.drop(c)
	w.child.drop(c)
}

func (w watches) count() int { return w.data.count() + w.child.count() }

// fire tells the watchers what a change did, in ZooKeeper's order: the node's
// own watchers first, then those of the parent's children. A connection that
// watches a deleted node's data and its children hears of it once.
func (w watches) fire(c change, notify func(*conn, EventType, string)) {
	emit := func(t EventType, path string) func(*conn) {
		return func(c *conn) { notify(c, t, path) }
	}
	parent := parentOf(c.path)
	switch c.op {
	case OpCreate:
		w.data.trigger(c.path, EventCreated, emit(EventCreated, c.path))
		w.child.trigger(parent, EventChildrenChanged, emit(EventChildrenChanged, parent))
	case OpSetData:
		w.data.trigger(c.path, EventDataChanged, emit(EventDataChanged, c.path))
	case OpDelete:
		told := map[*conn]bool{}
		once := func(cn *conn) {
			if !told[cn] {
				told[cn] = true
				notify(cn, EventDeleted, c.path)
			}
		}
		w.data.trigger(c.path, EventDeleted, once)
		w.child.trigger(c.path, EventDeleted, once)
		w.child.trigger(parent, EventChildrenChanged, emit(EventChildrenChanged, parent))
	}
}
