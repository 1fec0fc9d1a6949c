package zkembed

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/internal/jute"
)

// lookUp answers the requests that change no node. mu is held.
func (c *conn) lookUp(r request) response {
	d := decode(r.body)
	switch r.op {
	case OpExists, OpGetData, OpGetACL, OpGetChildren, OpGetChildren2, OpGetAllChildrenNumber,
		OpAddWatch, OpCheckWatches, OpRemoveWatches:
		o := d.operation(r.op)
		if d.Err != nil {
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
		return response{body: encoder{}.stat(n.stat())}
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
	switch o.op {
	case OpGetData:
		return encoder{}.buffer(n.data).stat(n.stat())
	case OpGetACL:
		acl := n.acl
		if !allowed(acl, c.ids, permAdmin) {
			acl = hideDigests(acl)
		}
		return encoder{}.acls(acl).stat(n.stat())
	case OpGetAllChildrenNumber:
		return encoder{}.int(c.view.tree.descendants(o.path))
	}
	e := encoder{}.strings(slices.Sorted(maps.Keys(n.children)))
	if o.op == OpGetChildren2 {
		e = e.stat(n.stat())
	}
	return e
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
	prefix := d.String()
	if d.Err != nil {
		return failed(CodeMarshallingError)
	}
	if prefix == jute.Null {
		prefix = ""
	}
	paths := slices.DeleteFunc(c.view.tree.ephemeralsOf(c.session.id), func(p string) bool {
		return !strings.HasPrefix(p, prefix)
	})
	return response{body: encoder{}.strings(paths)}
}

func (c *conn) whoAmI() response {
	e := encoder{}.int(int32(len(c.ids)))
	for _, id := range c.ids {
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e = e.string(id.scheme).string(user)
	}
	return response{body: e}
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
	d := decode(b)
	r := request{xid: d.Int32(), op: Op(d.Int32())}
	if d.Err != nil {
		return false
	}
	r.body = d.Rest
	s := c.s
	s.mu.Lock()
	c.recv++
	c.heard = time.Now()
	if r.op != OpAuth && r.op != OpSASL { // which are answered before they count
		s.touch(c)
	}
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
	case (sess.moved || sess.server != c.view) && r.op != OpCloseSession: // a follower may have held it for long
		return response{cut: true}
	case r.op == OpPing:
		return response{}
	case r.op == OpAuth:
		return c.auth(r.body)
	case r.op == OpSASL:
		return c.sasl(r.body)
	case r.op == OpSync:
		d := decode(r.body)
		path := d.String()
		if d.Err != nil {
			return failed(CodeMarshallingError)
		}
		return response{body: encoder{}.string(path)}
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
	zxid := c.view.tree.zxid
	if resp.bare {
		zxid = 0
	}
	e := make(encoder, 4, 20+len(resp.body)).int(r.xid).long(zxid).int(int32(resp.code))
	if resp.code == CodeOK {
		e = append(e, resp.body...)
	}
	var due time.Time
	if act.kind == actDelayReply {
		due = time.Now().Add(act.delay)
	}
	c.send(e, due)
}

// auth adds an identity to the connection, or ends it.
func (c *conn) auth(body []byte) response {
	d := decode(body)
	d.Int32()
	scheme, data := d.String(), d.Buffer()
	switch {
	case d.Err != nil:
		return failed(CodeMarshallingError)
	case scheme == "digest" && data != nil:
		if id := digest(string(data)); !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
	case scheme == "ip":
	default:
		return response{code: CodeAuthFailed, bare: true, last: true}
	}
	return response{bare: true}
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
