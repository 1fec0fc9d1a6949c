package zkembed

import "time"

// connect answers a connection's first packet: it starts a session, takes up
// an old one, or turns the client away.
func (c *conn) connect(b []byte) bool {
	d := &decoder{b: b}
	d.int() // protocol version
	seen, timeout, id, passwd := d.long(), d.int(), d.long(), d.buffer()
	// Java and Kazoo send a readOnly byte and want one back; go-zookeeper
	// does neither.
	readOnly := len(d.b) > 0
	if d.err != nil {
		return false
	}
	s := c.s
	s.mu.Lock()
	c.claimed = id
	s.mu.Unlock()
	// Followers may come and go while it waits: where the session belongs
	// is found out each time, and counts for as long as mu is held.
	if !c.lockWhenFree(c.quit, func() bool { return s.cut(c, ToServer) || s.viewFor(id).isolated() }) {
		return false
	}
	v := s.viewFor(id)
	if c.finished() || seen > v.tree.zxid {
		s.mu.Unlock()
		return false
	}
	c.view = v
	var sess *session
	if id == 0 {
		sess = s.newSession(timeout)
	} else {
		sess = s.resume(id, passwd, timeout)
	}
	if sess != nil {
		c.session, sess.conn = sess, c
	}
	return c.later(s.leader.tree.zxid, id == 0, func() { c.sendConnected(sess, readOnly) }) && sess != nil
}

// later unlocks mu and runs f: at once, or, for what needs the view to have
// processed zxid, when it has. It returns when f ran, or false when the
// connection ended first.
func (c *conn) later(zxid int64, wait bool, f func()) bool {
	if !wait {
		f()
		c.s.mu.Unlock()
		return true
	}
	done := make(chan struct{})
	c.view.after(zxid, func() {
		f()
		close(done)
	})
	c.s.mu.Unlock()
	select {
	case <-done:
		return true
	case <-c.quit:
		return false
	}
}

func (c *conn) sendConnected(sess *session, readOnly bool) {
	e := encoder{b: make([]byte, 4, 48)}
	e.int(0)
	if sess == nil {
		e.int(0)
		e.long(0)
		e.buffer(make([]byte, 16))
	} else {
		e.int(int32(sess.timeout / time.Millisecond))
		e.long(sess.id)
		e.buffer(sess.passwd[:])
	}
	if readOnly {
		e.bool(false)
	}
	c.send(e.b, time.Time{})
}
