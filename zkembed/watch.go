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
}

func newWatchTable() *watchTable {
	return &watchTable{paths: map[string]map[*conn]mode{}, conns: map[*conn]map[string]struct{}{}}
}

// set leaves one watch, of the given mode. As on a server of release 3.8, the
// new watch replaces any watch of the connection there: a getData with a watch
// turns a persistent watch into one that fires once.
func (w *watchTable) set(path string, c *conn, m mode) {
	if m == unwatched {
		delete(w.paths[path], c)
		if len(w.paths[path]) == 0 {
			delete(w.paths, path)
		}
		delete(w.conns[c], path)
		if len(w.conns[c]) == 0 {
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

// trigger calls emit for every connection that watches for the event, once for
// each of its watches, and uses up the one-shot watches.
func (w *watchTable) trigger(path string, t eventType, emit func(*conn)) {
	for c, m := range w.paths[path] {
		if t == eventChildrenChanged && m == recursive {
			continue
		}
		emit(c)
		if m == oneShot {
			w.set(path, c, unwatched)
		}
	}
	if t == eventChildrenChanged {
		return
	}
	for p := path; p != "/"; {
		p = parentOf(p)
		for c, m := range w.paths[p] {
			if m == recursive {
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

// setWatches puts the watches of a reconnecting client back. A watch whose node
// has changed since the zxid that the client saw last fires immediately.
func (c *conn) setWatches(d *decoder, op Op) response {
	since := d.Int64()
	data, exist, child := d.Whole(), d.Whole(), d.Whole()
	var always, deep []string
	if op == OpSetWatches2 {
		always, deep = d.Strings(), d.Strings()
	}
	if d.Err != nil {
		return failed(CodeMarshallingError)
	}
	v := c.view
	for _, p := range data {
		c.rearm(v.watches.data, p, since, eventDataChanged)
	}
	for _, p := range exist {
		if v.tree.get(p) != nil {
			c.s.notify(c, eventCreated, p)
		} else {
			v.watches.data.set(p, c, oneShot)
		}
	}
	for _, p := range child {
		c.rearm(v.watches.child, p, since, eventChildrenChanged)
	}
	for _, p := range always {
		c.watchAlways(p, persistent)
	}
	for _, p := range deep {
		c.watchAlways(p, recursive)
	}
	return response{}
}

func (c *conn) rearm(table *watchTable, path string, since int64, missed eventType) {
	n := c.view.tree.get(path)
	switch {
	case n == nil:
		c.s.notify(c, eventDeleted, path)
	case missed == eventDataChanged && n.mzxid > since, missed == eventChildrenChanged && n.pzxid > since:
		c.s.notify(c, missed, path)
	default:
		table.set(path, c, oneShot)
	}
}

func (c *conn) watchAlways(path string, m mode) {
	c.view.watches.data.set(path, c, m)
	c.view.watches.child.set(path, c, m)
}

// The watcher types of checkWatches and removeWatches.
const (
	watcherChildren = 1
	watcherData     = 2
	watcherAny      = 3
)

// watchRequest answers addWatch, checkWatches and removeWatches.
func (c *conn) watchRequest(o operation) response {
	w := c.view.watches
	if o.op == OpAddWatch {
		m, ok := map[int32]mode{0: persistent, 1: recursive}[o.flags]
		if !ok {
			return failed(CodeMarshallingError)
		}
		c.watchAlways(o.path, m)
		return response{body: encoder{}.int(0)}
	}
	if o.flags < watcherChildren || o.flags > watcherAny {
		return failed(CodeMarshallingError)
	}
	found := false
	for table, kind := range map[*watchTable]int32{w.child: watcherChildren, w.data: watcherData} {
		if table.paths[o.path][c] == unwatched || o.flags != watcherAny && o.flags != kind {
			continue
		}
		found = true
		if o.op == OpRemoveWatches {
			table.set(o.path, c, unwatched)
		}
	}
	if !found {
		return failed(CodeNoWatcher)
	}
	return response{}
}
