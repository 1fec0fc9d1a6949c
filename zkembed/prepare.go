package zkembed

import (
	"fmt"
	"slices"
)

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
	tls     bool // the server has TLS
	sasl    bool // the server has SASL
}

// prepare checks a write against the tree in ZooKeeper's order of checks and
// turns it into a change. A check that succeeds yields a change without
// effect.
func (t *tree) prepare(o operation, by author) (change, Code) {
	switch o.op {
	case OpDelete:
		return t.prepareDelete(o, by)
	case OpSetData:
		n, code := t.expected(o, by, permWrite)
		if code != CodeOK {
			return change{}, code
		}
		return change{op: OpSetData, path: o.path, data: o.data, acl: n.acl}, code
	case OpSetACL:
		return t.prepareSetACL(o, by)
	case OpCheck:
		_, code := t.expected(o, by, permRead)
		return change{op: OpCheck, path: o.path}, code
	}
	return t.prepareCreate(o, by)
}

// expected finds the node, and looks at the permission and the version: that of
// the ACL for an administrator.
func (t *tree) expected(o operation, by author, perm int32) (*node, Code) {
	if !validPath(o.path) {
		return nil, CodeBadArguments
	}
	n := t.get(o.path)
	if n == nil {
		return nil, CodeNoNode
	}
	version := n.version
	if perm == permAdmin {
		version = n.aversion
	}
	switch {
	case !allowed(n.acl, by.ids, perm):
		return nil, CodeNoAuth
	case o.version != -1 && o.version != version:
		return nil, CodeBadVersion
	}
	return n, CodeOK
}

func (t *tree) prepareSetACL(o operation, by author) (change, Code) {
	if !validPath(o.path) {
		return change{}, CodeBadArguments
	}
	acl, ok := fixACL(o.acl, by)
	if !ok {
		return change{}, CodeInvalidACL
	}
	_, code := t.expected(o, by, permAdmin)
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
	acl, ok := fixACL(o.acl, by)
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

// result is the outcome of one operation of a write request.
type result struct {
	op   Op
	code Code
	path string
	stat Stat
}

// write carries out a write request under one zxid, which it takes whether it
// succeeds or not. mu is held.
func (s *Server) write(c *conn, r request) response {
	if r.op == OpCloseSession {
		c.closing = true
		s.endSession(c.session)
		return response{last: true}
	}
	by := author{c.session.id, c.ids, c.s.cfg.tls != nil, c.s.cfg.passwords != nil}
	d := decode(r.body)
	ops, multi := []operation(nil), r.op == OpMulti
	if multi {
		ops = d.multi()
	} else {
		ops = []operation{d.operation(r.op)}
	}
	t := s.begin()
	if d.Err != nil {
		s.commit(t)
		return failed(CodeMarshallingError)
	}
	results, changes := s.leader.tree.perform(ops, by, t)
	t.changes = changes
	s.commit(t)
	if multi {
		return response{body: multiBody(results)}
	}
	return response{code: results[0].code, body: encoder{}.result(results[0])}
}

// perform carries out all the operations or none.
func (t *tree) perform(ops []operation, by author, tx txn) ([]result, []change) {
	results := make([]result, len(ops))
	var changes []change
	var undo []func()
	for i, o := range ops {
		ch, code := t.prepare(o, by)
		if code != CodeOK {
			for _, takeBack := range slices.Backward(undo) {
				takeBack()
			}
			return rolledBack(ops, i, code), nil
		}
		undo = append(undo, t.apply(ch, tx.zxid, tx.ms))
		results[i] = result{op: o.op, path: ch.path}
		if n := t.get(ch.path); n != nil {
			results[i].stat = n.stat()
		}
		if ch.op != OpCheck {
			changes = append(changes, ch)
		}
	}
	return results, changes
}

// rolledBack are the results of a request whose operation i failed.
func rolledBack(ops []operation, i int, code Code) []result {
	results := make([]result, len(ops))
	for j := range results {
		results[j].op = ops[j].op
		if j > i {
			results[j].code = CodeRuntimeInconsistency
		}
	}
	results[i].code = code
	return results
}

// result writes the body that answers one successful operation.
func (e encoder) result(r result) encoder {
	switch r.op {
	case OpCreate:
		return e.string(r.path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return e.string(r.path).stat(r.stat)
	case OpSetData, OpSetACL:
		return e.stat(r.stat)
	}
	return e
}

// multi reads the operations of a multi. Operations that cannot be part of one
// make the packet malformed.
func (d *decoder) multi() []operation {
	return d.operations(func(op Op) bool {
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			return true
		}
		return false
	})
}

func (d *decoder) multiRead() []operation {
	return d.operations(func(op Op) bool { return op == OpGetData || op == OpGetChildren })
}

func (d *decoder) operations(fits func(Op) bool) []operation {
	var ops []operation
	for d.Err == nil {
		op, done := Op(d.Int32()), d.Bool()
		d.Int32()
		if done {
			break
		}
		if !fits(op) {
			d.Fail()
			break
		}
		o := d.operation(op).inMulti()
		d.Refuse(o.path)
		ops = append(ops, o)
	}
	return ops
}

// inMulti: the flags of a create inside a multi, rather than its operation
// code, say what it makes, and create2 is answered as create.
func (o operation) inMulti() operation {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer:
		o.op = OpCreate
		if o.flags == flagContainer {
			o.op = OpCreateContainer
		}
	}
	return o
}

func (e encoder) multiHeader(op Op, done bool, code Code) encoder {
	return e.int(int32(op)).bool(done).int(int32(code))
}

// multiError is the result of a part that failed, or was undone with another.
func (e encoder) multiError(code Code) encoder {
	return e.multiHeader(-1, false, code).int(int32(code))
}

// multiBody is the reply to a multi. If one operation failed, all results are
// written as errors, with code 0 for the operations before it.
func multiBody(results []result) []byte {
	e := encoder{}
	bad := slices.ContainsFunc(results, func(r result) bool { return r.code != CodeOK })
	for _, r := range results {
		switch {
		case bad:
			e = e.multiError(r.code)
		case r.op == OpCreateContainer || r.op == OpCreateTTL:
			e = e.multiHeader(OpCreate2, false, CodeOK).result(r)
		default:
			e = e.multiHeader(r.op, false, CodeOK).result(r)
		}
	}
	return e.multiHeader(-1, true, -1)
}

// readMulti answers a multiRead: each part succeeds or fails by itself.
func (c *conn) readMulti(body []byte) response {
	d := decode(body)
	ops := d.multiRead()
	if d.Err != nil {
		return failed(CodeMarshallingError)
	}
	e := encoder{}
	for _, o := range ops {
		if len(e) > maxUnread {
			return response{code: CodeSystemError, last: true}
		}
		o.watch = false
		if resp := c.readPath(o); resp.code != CodeOK {
			e = e.multiError(resp.code)
		} else {
			e = append(e.multiHeader(o.op, false, CodeOK), resp.body...)
		}
	}
	return response{body: e.multiHeader(-1, true, -1)}
}
