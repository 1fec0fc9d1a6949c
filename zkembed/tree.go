package zkembed

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// Kind says how long a node lives.
type Kind uint8

// The kinds of nodes.
const (
	Persistent Kind = iota
	Ephemeral
	Container
	TTL
)

// String is the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Ephemeral:
		return "ephemeral"
	case Container:
		return "container"
	case TTL:
		return "ttl"
	}
	return "persistent"
}

type node struct {
	data                []byte
	acl                 []ACL
	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	creations           int32 // children ever created: the next sequence number
	kind                Kind
	owner               int64 // session of an ephemeral node
	ttl                 int64 // milliseconds
	children            map[string]struct{}
}

// stat is what clients see. They see twice the creations less the children
// that are left, that is, the creations plus the deletions.
func (n *node) stat() Stat {
	return Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: 2*n.creations - int32(len(n.children)), Aversion: n.aversion,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)),
		NumChildren: int32(len(n.children)), Pzxid: n.pzxid,
	}
}

// change is one committed effect on a tree. Changes applied in the same order
// leave the same tree everywhere, so a follower can be fed with changes.
type change struct {
	op      Op // OpCreate, OpDelete, OpSetData, OpSetACL or OpCloseSession
	path    string
	data    []byte
	acl     []ACL // the node's: only watchers that may read it get the event
	above   []ACL // the parent's, for OpCreate and OpDelete
	counter int32 // OpCreate: the parent's creations afterwards
	kind    Kind
	ttl     int64
	session int64 // OpCreate: owner; OpCloseSession: the session that ended
}

// txn is all the effects of one write request. It may be empty: a failed
// write takes a zxid too.
type txn struct {
	zxid    int64
	ms      int64 // time of the commit
	changes []change
}

type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{}
	zxid       int64 // last processed
}

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}}
	for _, p := range preset {
		t.nodes[p] = &node{data: []byte{}, acl: openACL, children: map[string]struct{}{}}
		if p != "/" {
			t.nodes[parentOf(p)].children[nameOf(p)] = struct{}{}
		}
	}
	config := t.nodes["/zookeeper/config"]
	config.acl, config.aversion = readACL, -1
	return t
}

// get finds a node; like ZooKeeper it takes the empty path for the root.
func (t *tree) get(path string) *node {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// clone copies the tree. Data and ACLs are never written in place, so they
// are shared.
func (t *tree) clone() *tree {
	c := &tree{nodes: make(map[string]*node, len(t.nodes)), ephemerals: map[int64]map[string]struct{}{}, zxid: t.zxid}
	for p, n := range t.nodes {
		m := *n
		m.children = maps.Clone(n.children)
		c.nodes[p] = &m
	}
	for id, paths := range t.ephemerals {
		c.ephemerals[id] = maps.Clone(paths)
	}
	return c
}

func (t *tree) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// apply performs a change that was checked before, and returns how to undo it.
func (t *tree) apply(c change, zxid, ms int64) (undo func()) {
	switch c.op {
	case OpCreate:
		return t.create(c, zxid, ms)
	case OpDelete:
		return t.remove(c.path, zxid)
	case OpSetData:
		n := t.nodes[c.path]
		old := *n
		n.data, n.mzxid, n.mtime = c.data, zxid, ms
		n.version++
		return func() { *n = old }
	case OpSetACL:
		n := t.nodes[c.path]
		old := *n
		n.acl = c.acl
		n.aversion++
		return func() { *n = old }
	}
	return func() {}
}

// deletion is the change that deletes a node which is there.
func (t *tree) deletion(path string) change {
	return change{op: OpDelete, path: path, acl: t.nodes[path].acl, above: t.nodes[parentOf(path)].acl}
}

func (t *tree) create(c change, zxid, ms int64) (undo func()) {
	parent := t.nodes[parentOf(c.path)]
	counter, pzxid := parent.creations, parent.pzxid
	// The counter never goes back: past the largest int32 it sticks, and then
	// pzxid stands still too, as on a real server.
	if c.counter > counter {
		parent.creations, parent.pzxid = c.counter, zxid
	}
	n := &node{
		data: c.data, acl: c.acl, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: ms, mtime: ms,
		kind: c.kind, ttl: c.ttl, owner: c.session, children: map[string]struct{}{},
	}
	t.link(c.path, n)
	return func() {
		t.unlink(c.path, n)
		parent.creations, parent.pzxid = counter, pzxid
	}
}

func (t *tree) remove(path string, zxid int64) (undo func()) {
	n, parent := t.nodes[path], t.nodes[parentOf(path)]
	pzxid := parent.pzxid
	t.unlink(path, n)
	parent.pzxid = zxid
	return func() {
		t.link(path, n)
		parent.pzxid = pzxid
	}
}

func (t *tree) link(path string, n *node) {
	t.nodes[path] = n
	t.nodes[parentOf(path)].children[nameOf(path)] = struct{}{}
	if n.owner != 0 {
		if t.ephemerals[n.owner] == nil {
			t.ephemerals[n.owner] = map[string]struct{}{}
		}
		t.ephemerals[n.owner][path] = struct{}{}
	}
}

func (t *tree) unlink(path string, n *node) {
	delete(t.nodes, path)
	delete(t.nodes[parentOf(path)].children, nameOf(path))
	if n.owner != 0 {
		delete(t.ephemerals[n.owner], path)
		if len(t.ephemerals[n.owner]) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// expired reports whether the reaper takes the node: a container that has had a
// child and has none, a TTL node without children that was not written for ttl.
func (n *node) expired(ms int64) bool {
	if len(n.children) > 0 {
		return false
	}
	switch n.kind {
	case Container:
		return n.creations > 0
	case TTL:
		return ms-n.mtime > n.ttl
	}
	return false
}

// nextCounter is the parent's counter after one more creation; it wraps like
// Java's int.
func (n *node) nextCounter() int32 {
	if n.creations == math.MaxInt32 {
		return math.MinInt32
	}
	return n.creations + 1
}

// parentOf returns the parent's path; the parent of a top-level node is "/".
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// splittable is the first check on a path that is to be created or deleted:
// it has a parent to look for. ZooKeeper looks for the parent before it looks
// at the rest of the path, and so the order of errors depends on it.
func splittable(path string) bool {
	return strings.Contains(path, "/") && !strings.Contains(path, "\x00")
}

// validPath is ZooKeeper's rule for paths.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if seg == "" || seg == "." || seg == ".." {
			return false
		}
	}
	return strings.IndexFunc(path, forbiddenRune) < 0
}

// forbiddenRune follows Java's view of characters: everything outside the
// basic plane is a pair of surrogates there, and surrogates are forbidden.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// preset are the nodes that are always there, parents first.
var preset = []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}

// special reports whether a node is preset, and so cannot be deleted.
func special(path string) bool { return slices.Contains(preset, path) }
