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
	// Followers may come and go while it waits: the session's view is looked up
	// afterwards.
	if !c.lockWhenFree(c.quit, func() bool { return s.cut(c, ToServer) }) {
		return false
	}
	v := s.viewFor(id)
	if c.finished() || seen > v.tree.zxid || v.follower != nil && v.follower.out {
		s.mu.Unlock()
		return false
	}
	c.view = v
	return c.ask(v.follower, func() func() bool {
		var sess *session
		if id == 0 {
			sess = s.newSession(timeout)
		} else {
			sess = s.resume(id, passwd, timeout)
		}
		return func() bool {
			if sess != nil && !c.finished() {
				sess.take(c)
			}
			c.sendConnected(sess, readOnly)
			return sess != nil
		}
	}) && c.caughtUp()
}

// take makes a connection the session's, and ends the one before. mu is held.
func (sess *session) take(c *conn) {
	if sess.conn != nil {
		sess.conn.kill()
	}
	c.session, sess.conn = sess, c
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
