package zkembed

import (
	"maps"
	"slices"
	"strings"
)

// lookUp answers the requests that change no node. mu is held.
func (c *conn) lookUp(r request) response {
	d := &decoder{b: r.body}
	switch r.op {
	case OpExists, OpGetData, OpGetACL, OpGetChildren, OpGetChildren2, OpGetAllChildrenNumber,
		OpAddWatch, OpCheckWatches, OpRemoveWatches:
		o := d.operation(r.op)
		if d.err != nil {
			return failed(CodeMarshallingError)
		}
		if r.op == OpAddWatch || r.op == OpCheckWatches || r.op == OpRemoveWatches {
			return c.watchRequest(o)
		}
		return c.readPath(o)
	case OpSetWatches, OpSetWatches2:
		return c.setWatches(d, r.op)
	case OpMultiRead:
		return c.readMulti(r.body)
	case OpGetEphemerals:
		return c.ephemerals(d)
	case OpWhoAmI:
		return c.whoAmI()
	}
	return response{code: CodeUnimplemented, last: true}
}

// readPath answers a read of one node, and leaves the watch that it asks for.
func (c *conn) readPath(o operation) response {
	v := c.view
	n := v.tree.get(o.path)
	if o.op == OpExists {
		if strings.Contains(o.path, "\x00") {
			return failed(CodeBadArguments)
		}
		// The only read that also waits for a node to come.
		if o.watch {
			v.watches.data.set(o.path, c, oneShot)
		}
		if n == nil {
			return failed(CodeNoNode)
		}
		e := encoder{}
		e.stat(n.stat())
		return response{body: e.b}
	}
	perm := int32(permRead)
	if o.op == OpGetACL {
		perm |= permAdmin
	}
	switch {
	case n == nil:
		return failed(CodeNoNode)
	case !allowed(n.acl, c.ids, perm):
		return failed(CodeNoAuth)
	}
	if o.watch {
		table := v.watches.child
		if o.op == OpGetData {
			table = v.watches.data
		}
		table.set(o.path, c, oneShot)
	}
	return response{body: c.readBody(o, n)}
}

func (c *conn) readBody(o operation, n *node) []byte {
	e := encoder{}
	switch o.op {
	case OpGetData:
		e.buffer(n.data)
		e.stat(n.stat())
	case OpGetACL:
		acl := n.acl
		if !allowed(acl, c.ids, permAdmin) {
			acl = hideDigests(acl)
		}
		e.acls(acl)
		e.stat(n.stat())
	case OpGetChildren, OpGetChildren2:
		e.strings(slices.Sorted(maps.Keys(n.children)))
		if o.op == OpGetChildren2 {
			e.stat(n.stat())
		}
	case OpGetAllChildrenNumber:
		e.int(c.view.tree.descendants(o.path))
	}
	return e.b
}

func (t *tree) descendants(path string) int32 {
	if path == "/" {
		return int32(len(t.nodes) - 1)
	}
	count := int32(0)
	for p := range t.nodes {
		if strings.HasPrefix(p, path+"/") {
			count++
		}
	}
	return count
}

func (c *conn) ephemerals(d *decoder) response {
	prefix := d.string()
	if d.err != nil {
		return failed(CodeMarshallingError)
	}
	if prefix == null {
		prefix = ""
	}
	paths := slices.DeleteFunc(c.view.tree.ephemeralsOf(c.session.id), func(p string) bool {
		return !strings.HasPrefix(p, prefix)
	})
	e := encoder{}
	e.strings(paths)
	return response{body: e.b}
}

func (c *conn) whoAmI() response {
	e := encoder{}
	e.int(int32(len(c.ids)))
	for _, id := range c.ids {
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.string(id.scheme)
		e.string(user)
	}
	return response{body: e.b}
}
