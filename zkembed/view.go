package zkembed

import "time"

// view is the tree as a server of the ensemble sees it, and the watches on it.
// The leader's view has every commit; a lagging follower's is behind. Guarded
// by Server.mu.
type view struct {
	tree     *tree
	watches  watches
	follower *Follower // nil for the leader
}

// begin takes the next zxid for a write request. The caller applies changes
// to the leader's tree, lists them in the transaction, and commits it.
func (s *Server) begin() txn {
	s.leader.tree.zxid++
	return txn{zxid: s.leader.tree.zxid, ms: time.Now().UnixMilli()}
}

// commit sends the events to the leader's clients, and the transaction to the
// followers.
func (s *Server) commit(t txn) {
	s.publish(s.leader, t)
	for _, f := range s.followers {
		f.send(ToFollower, parcel{arrive: func() { f.receive(t) }})
	}
}

// publish sends all clients of a view the events of a transaction.
func (s *Server) publish(v *view, t txn) {
	for _, c := range t.changes {
		v.watches.fire(c, s.notify)
		if c.op != OpCloseSession {
			continue
		}
		for cn := range s.conns {
			if cn.view == v && cn.session != nil && cn.session.id == c.session && !cn.closing {
				cn.finish()
			}
		}
	}
}

// notify sends a watch event to one connection.
func (s *Server) notify(c *conn, t eventType, path string) {
	e := encoder{b: make([]byte, 4, 64)}
	e.int(-1)
	e.long(-1)
	e.int(0)
	e.int(int32(t))
	e.int(3) // connected: the state that every event carries
	e.string(path)
	c.send(e.b, s.eventDue(c, path))
	s.count(c.session, OpNotify)
}
