package zkembed

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Counts are numbers of requests by operation. OpCreateSession counts new
// sessions and OpNotify events sent.
type Counts map[Op]int

// Total is the number of requests without pings, events and session starts.
func (c Counts) Total() int {
	n := 0
	for op, k := range c {
		if op != OpPing && op != OpNotify && op != OpCreateSession {
			n += k
		}
	}
	return n
}

// Since returns what was counted since an earlier reading.
func (c Counts) Since(earlier Counts) Counts {
	d := Counts{}
	for op, n := range c {
		if n != earlier[op] {
			d[op] = n - earlier[op]
		}
	}
	return d
}

// count leaves out operations that do not exist: what hostile clients make up
// must not fill the maps.
func (s *Server) count(sess *session, op Op) {
	if _, ok := opNames[op]; !ok {
		return
	}
	s.counts[op]++
	sess.counts[op]++
}

// Counts are the requests of all sessions since the start.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// SessionCounts are the requests of one live session, over all its
// connections; nil if there is no such session.
func (s *Server) SessionCounts(id int64) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		return maps.Clone(sess.counts)
	}
	return nil
}

// SessionInfo is what the server knows about a session.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration
	Expires    time.Time // unless the client sends something before
	Connected  bool
	Remote     string   // the client's address while connected
	Ephemerals []string // sorted paths
	Watches    int
}

// Sessions are the live sessions, oldest first.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []SessionInfo
	for _, sess := range s.sessions {
		i := SessionInfo{
			ID: sess.id, Timeout: sess.timeout, Expires: sess.expires, Connected: sess.conn != nil,
			Ephemerals: s.leader.tree.ephemeralsOf(sess.id),
		}
		if c := sess.conn; c != nil {
			i.Remote = c.remote
			i.Watches = len(c.view.watches.data.conns[c]) + len(c.view.watches.child.conns[c])
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Node is one node of the tree.
type Node struct {
	Path string
	Kind Kind
	Data []byte
	ACL  []ACL
	TTL  time.Duration // of a TTL node
	Stat Stat          // EphemeralOwner is the session of an ephemeral node
}

// Nodes are all the nodes but /zookeeper and what is below it, sorted by path.
func (s *Server) Nodes() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Node
	for _, p := range s.leader.tree.paths() {
		n := s.leader.tree.nodes[p]
		out = append(out, Node{
			Path: p, Kind: n.kind, Data: slices.Clone(n.data), ACL: slices.Clone(n.acl),
			TTL: time.Duration(n.ttl) * time.Millisecond, Stat: n.stat(),
		})
	}
	return out
}

// paths are the sorted paths of the nodes that clients made.
func (t *tree) paths() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.nodes)), special)
}

// WatchCount is the number of watches, counted as ZooKeeper's mntr does: one
// for each connection, path and kind (data or children).
func (s *Server) WatchCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchCount()
}

func (s *Server) watchCount() int {
	n := s.leader.watches.count()
	for _, f := range s.followers {
		n += f.v.watches.count()
	}
	return n
}

// Watched are the sorted paths that have a watch.
func (s *Server) Watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := map[string]struct{}{}
	for _, v := range s.views() {
		for _, table := range []*watchTable{v.watches.data, v.watches.child} {
			for p := range table.paths {
				paths[p] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

func (s *Server) views() []*view {
	vs := []*view{s.leader}
	for _, f := range s.followers {
		vs = append(vs, f.v)
	}
	return vs
}

// Zxid is the last transaction.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader.tree.zxid
}

// SetSequence sets the number that the next sequential child of path gets, to
// test what happens near the end of the numbers, 2147483647. There a real
// server's counter sticks, and so does this one.
func (s *Server) SetSequence(path string, next int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next < 0 && next != math.MinInt32 {
		return fmt.Errorf("zkembed: sequence number %d: want 0 to 2147483647", next)
	}
	found := false
	for _, v := range s.views() {
		if n := v.tree.get(path); n != nil {
			n.creations, found = next, true
		}
	}
	if !found {
		return fmt.Errorf("zkembed: no node %q to set the sequence of", path)
	}
	return nil
}

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
	return txn{zxid: s.leader.tree.zxid, ms: s.clock().UnixMilli()}
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
	const connected = 3 // the state that every event carries
	e := make(encoder, 4, 64).int(-1).long(-1).int(0).int(int32(t)).int(connected).string(path)
	c.send(e, s.eventDue(c, path))
	s.count(c.session, OpNotify)
}
