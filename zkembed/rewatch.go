package zkembed

// setWatches puts the watches of a reconnecting client back. A watch whose node
// has changed since the zxid that the client saw last fires at once.
func (c *conn) setWatches(d *decoder, op Op) response {
	since := d.long()
	data, exist, child := d.whole(), d.whole(), d.whole()
	var always, deep []string
	if op == OpSetWatches2 {
		always, deep = d.strings(), d.strings()
	}
	if d.err != nil {
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
		e := encoder{}
		e.int(0)
		return response{body: e.b}
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
