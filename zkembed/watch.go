package zkembed

// eventType is the kind of a watch event, with ZooKeeper's numbers.
type eventType int32

// The events that watches report.
const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// mode is the way in which one connection watches one path.
type mode uint8

const (
	unwatched mode = iota
	oneShot
	persistent
	recursive
)

// watchTable holds the watches of one kind: data or child watches.
type watchTable struct {
	paths map[string]map[*conn]mode
	conns map[*conn]map[string]struct{}
	deep  int // recursive watches: without any, ancestors are not searched
}

func newWatchTable() *watchTable {
	return &watchTable{paths: map[string]map[*conn]mode{}, conns: map[*conn]map[string]struct{}{}}
}

// set leaves one watch, of the given mode. As on a server of release 3.8 it
// takes the place of whatever watch the connection had there: a getData with
// a watch turns a persistent watch into one that fires once.
func (w *watchTable) set(path string, c *conn, m mode) {
	if w.paths[path][c] == recursive {
		w.deep--
	}
	if m == unwatched {
		if delete(w.paths[path], c); len(w.paths[path]) == 0 {
			delete(w.paths, path)
		}
		if delete(w.conns[c], path); len(w.conns[c]) == 0 {
			delete(w.conns, c)
		}
		return
	}
	if m == recursive {
		w.deep++
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
		w.set(path, c, unwatched)
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
func (w *watchTable) trigger(path string, t eventType, emit func(*conn)) {
	told := map[*conn]bool{}
	for c, m := range w.paths[path] {
		if t == eventChildrenChanged && m == recursive {
			continue
		}
		told[c] = true
		emit(c)
		if m == oneShot {
			w.set(path, c, unwatched)
		}
	}
	if w.deep == 0 || t == eventChildrenChanged {
		return
	}
	for p := path; p != "/"; {
		p = parentOf(p)
		for c, m := range w.paths[p] {
			if m == recursive && !told[c] {
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

// fire sends the events of a change, in ZooKeeper's order: first to the node's
// own watchers, then to those of the parent's children. A connection that
// watches a deleted node's data and its children gets one event. A client that
// may not read the node (or the parent, for its children) gets no event, and
// its one-shot watch is used up all the same, as in the releases that fix
// CVE-2024-23944: 3.8.4, 3.9.2 and Debian's 3.8.0.
func (w watches) fire(c change, notify func(*conn, eventType, string)) {
	tell := func(table *watchTable, t eventType, path string, acl []ACL, told map[*conn]bool) {
		table.trigger(path, t, func(cn *conn) {
			if !told[cn] && allowed(acl, cn.ids, permRead) {
				told[cn] = true
				notify(cn, t, path)
			}
		})
	}
	told, parent := map[*conn]bool{}, parentOf(c.path)
	switch c.op {
	case OpCreate:
		tell(w.data, eventCreated, c.path, c.acl, told)
	case OpSetData:
		tell(w.data, eventDataChanged, c.path, c.acl, told)
	case OpDelete:
		tell(w.data, eventDeleted, c.path, c.acl, told)
		tell(w.child, eventDeleted, c.path, c.acl, told)
	}
	if c.op == OpCreate || c.op == OpDelete {
		tell(w.child, eventChildrenChanged, parent, c.above, map[*conn]bool{})
	}
}
