package zkembed

import (
	"maps"
	"slices"
	"strings"
	"time"
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

// request is one packet of a connected client.
type request struct {
	xid  int32
	op   Op
	body []byte
}

// response is what to send back. The body counts only without an error.
type response struct {
	code Code
	body []byte
	bare bool // credentials are answered with zxid 0
	last bool // close the connection behind it
	cut  bool // close the connection instead
}

func failed(code Code) response { return response{code: code} }

// request answers one packet. It returns false when the connection ends.
func (c *conn) request(b []byte) bool {
	d := &decoder{b: b}
	r := request{xid: d.int(), op: Op(d.int())}
	if d.err != nil {
		return false
	}
	r.body = d.b
	s := c.s
	s.mu.Lock()
	c.recv++
	c.heard = time.Now()
	s.touch(c)
	s.count(c.session, r.op)
	act := s.faultFor(c, r)
	s.mu.Unlock()
	if !c.before(r, act) {
		return false
	}
	forwarded := (r.op.write() || r.op == OpSync) && act.kind != actReplyError
	if !forwarded && !c.caughtUp() {
		return false
	}
	s.mu.Lock()
	if c.finished() {
		s.mu.Unlock()
		return false
	}
	f := c.view.follower
	if !forwarded {
		f = nil // the follower answers by itself
	}
	return c.ask(f, func() func() bool {
		resp := c.answer(r, act)
		return func() bool {
			if !resp.cut {
				c.reply(r, resp, act)
			}
			return !resp.cut && !resp.last && act.kind != actLoseReply
		}
	})
}

// ask has the leader do something, and unlocks mu. A follower asks over its
// link, does not wait (see caughtUp), and takes the answer when it has seen all
// that the leader had committed before. What it has asked for is done also if
// the connection ends first; no later request is answered then. ask returns
// false when the connection is to end.
func (c *conn) ask(f *Follower, do func() (answer func() bool)) bool {
	if f == nil {
		goesOn := do()()
		c.s.mu.Unlock()
		return goesOn
	}
	answered := make(chan struct{})
	f.send(ToLeader, parcel{arrive: func() {
		answer := do()
		f.send(ToFollower, parcel{arrive: func() {
			if !c.finished() && !answer() {
				c.finish()
			}
			close(answered)
		}})
	}})
	c.asked = answered
	c.s.mu.Unlock()
	return true
}

// caughtUp waits for the answers to all that the connection has asked for. It
// returns false when the connection ends first.
func (c *conn) caughtUp() bool {
	if c.asked != nil {
		select {
		case <-c.asked:
		case <-c.quit:
		}
	}
	return !c.finished()
}

// answer carries the request out and returns the response. mu is held.
func (c *conn) answer(r request, act Action) response {
	s, sess := c.s, c.session
	switch {
	case act.kind == actReplyError:
		return failed(act.code)
	case sess.moved && r.op != OpCloseSession:
		return response{cut: true}
	case r.op == OpPing:
		return response{}
	case r.op == OpAuth:
		return c.auth(r.body)
	case r.op == OpSync:
		d := &decoder{b: r.body}
		e := encoder{}
		e.string(d.string())
		if d.err != nil {
			return failed(CodeMarshallingError)
		}
		return response{body: e.b}
	case r.op.write() && sess.ended:
		return response{code: CodeSessionExpired, last: true}
	case r.op.write():
		return s.write(c, r)
	}
	return c.lookUp(r)
}

// reply queues the answer. mu is held.
func (c *conn) reply(r request, resp response, act Action) {
	if act.kind == actLoseReply {
		return
	}
	e := encoder{b: make([]byte, 4, 20+len(resp.body))}
	e.int(r.xid)
	if resp.bare {
		e.long(0)
	} else {
		e.long(c.view.tree.zxid)
	}
	e.int(int32(resp.code))
	if resp.code == CodeOK {
		e.b = append(e.b, resp.body...)
	}
	var due time.Time
	if act.kind == actDelayReply {
		due = time.Now().Add(act.delay)
	}
	c.send(e.b, due)
}

// auth adds an identity to the connection, or ends it.
func (c *conn) auth(body []byte) response {
	d := &decoder{b: body}
	d.int()
	scheme, data := d.string(), d.buffer()
	switch {
	case d.err != nil:
		return failed(CodeMarshallingError)
	case scheme == "digest" && data != nil:
		c.addIdentity(digest(string(data)))
	case scheme == "ip":
	default:
		return response{code: CodeAuthFailed, bare: true, last: true}
	}
	return response{bare: true}
}

func (c *conn) addIdentity(id identity) {
	for _, have := range c.ids {
		if have == id {
			return
		}
	}
	c.ids = append(c.ids, id)
}

// touch keeps the session alive. What a follower hears, its leader learns
// with the answer to its next ping. mu is held.
func (s *Server) touch(c *conn) {
	if f := c.view.follower; f != nil {
		f.touched[c.session.id] = struct{}{}
		return
	}
	s.extend(c.session)
}
