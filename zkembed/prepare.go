package zkembed

import "fmt"

// Flags of a create, as they come over the wire.
const (
	flagEphemeral           = 1
	flagSequential          = 2
	flagEphemeralSequential = 3
	flagContainer           = 4
	flagTTL                 = 5
	flagTTLSequential       = 6
)

// maxTTL is what ZooKeeper can store: 40 bits of milliseconds.
const maxTTL = 1<<40 - 1

// author is the client that asks for a write.
type author struct {
	session int64
	ids     []identity
}

// prepare checks a write against the tree in ZooKeeper's order of checks and
// turns it into a change. A check that succeeds yields a change without
// effect.
func (t *tree) prepare(o operation, by author) (change, Code) {
	switch o.op {
	case OpDelete:
		return t.prepareDelete(o, by)
	case OpSetData:
		n, code := t.writable(o, by, permWrite)
		if code == CodeOK && o.version != -1 && o.version != n.version {
			code = CodeBadVersion
		}
		if code != CodeOK {
			return change{}, code
		}
		return change{op: OpSetData, path: o.path, data: o.data, acl: n.acl}, code
	case OpSetACL:
		return t.prepareSetACL(o, by)
	case OpCheck:
		n, code := t.writable(o, by, permRead)
		if code == CodeOK && o.version != -1 && o.version != n.version {
			code = CodeBadVersion
		}
		return change{op: OpCheck, path: o.path}, code
	}
	return t.prepareCreate(o, by)
}

// writable finds the node and looks at the permission.
func (t *tree) writable(o operation, by author, perm int32) (*node, Code) {
	if !validPath(o.path) {
		return nil, CodeBadArguments
	}
	n := t.get(o.path)
	switch {
	case n == nil:
		return nil, CodeNoNode
	case !allowed(n.acl, by.ids, perm):
		return nil, CodeNoAuth
	}
	return n, CodeOK
}

func (t *tree) prepareSetACL(o operation, by author) (change, Code) {
	if !validPath(o.path) {
		return change{}, CodeBadArguments
	}
	acl, ok := fixACL(o.acl, by.ids)
	if !ok {
		return change{}, CodeInvalidACL
	}
	n, code := t.writable(o, by, permAdmin)
	if code == CodeOK && o.version != -1 && o.version != n.aversion {
		code = CodeBadVersion
	}
	return change{op: OpSetACL, path: o.path, acl: acl}, code
}

func (t *tree) prepareDelete(o operation, by author) (change, Code) {
	if !splittable(o.path) || special(o.path) {
		return change{}, CodeBadArguments
	}
	parent, n := t.get(parentOf(o.path)), t.get(o.path)
	switch {
	case parent == nil:
		return change{}, CodeNoNode
	case !allowed(parent.acl, by.ids, permDelete):
		return change{}, CodeNoAuth
	case n == nil:
		return change{}, CodeNoNode
	case o.version != -1 && o.version != n.version:
		return change{}, CodeBadVersion
	case len(n.children) > 0:
		return change{}, CodeNotEmpty
	}
	return t.deletion(o.path), CodeOK
}

func (t *tree) prepareCreate(o operation, by author) (change, Code) {
	if !validMode(o) || !splittable(o.path) {
		return change{}, CodeBadArguments
	}
	acl, ok := fixACL(o.acl, by.ids)
	if !ok {
		return change{}, CodeInvalidACL
	}
	parent := t.get(parentOf(o.path))
	switch {
	case parent == nil:
		return change{}, CodeNoNode
	case !allowed(parent.acl, by.ids, permCreate):
		return change{}, CodeNoAuth
	}
	switch o.flags {
	case flagSequential, flagEphemeralSequential, flagTTLSequential:
		o.path += fmt.Sprintf("%010d", parent.creations)
	}
	switch {
	case !validPath(o.path):
		return change{}, CodeBadArguments
	case t.get(o.path) != nil:
		return change{}, CodeNodeExists
	case parent.kind == Ephemeral:
		return change{}, CodeNoChildrenForEphemerals
	}
	c := change{op: OpCreate, path: o.path, data: o.data, acl: acl, above: parent.acl, counter: parent.nextCounter()}
	switch {
	case o.op == OpCreateContainer:
		c.kind = Container
	case o.op == OpCreateTTL && o.ttl > 0:
		c.kind, c.ttl = TTL, o.ttl
	case o.flags == flagEphemeral || o.flags == flagEphemeralSequential:
		c.kind, c.session = Ephemeral, by.session
	}
	return c, CodeOK
}

// validMode: only the TTL flags go with a time to live, and they need one.
func validMode(o operation) bool {
	switch o.flags {
	case flagTTL, flagTTLSequential:
		return o.ttl > 0 && o.ttl <= maxTTL
	}
	return o.flags >= 0 && o.flags <= flagContainer && o.ttl < 0
}
