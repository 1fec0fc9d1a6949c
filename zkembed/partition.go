package zkembed

import (
	"slices"
	"time"
)

// Direction is the way that packets travel.
type Direction uint8

// The directions between a client and the server, and between a follower and
// its leader. In a [Cut] the zero Direction counts as Both.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both       = ToServer | ToClient
	ToLeader   = ToServer
	ToFollower = ToClient
)

// NewConns says what a partition does to new connections.
type NewConns uint8

const (
	// HangDial gives a new connection no answer. [Server.Dial] waits for its
	// timeout. (Over TCP the kernel accepts, and silence follows.)
	HangDial NewConns = iota
	// RefuseDial turns new connections away immediately.
	RefuseDial
	// AcceptDial accepts new connections and then keeps silent, as a frozen
	// process does.
	AcceptDial
)

// Cut describes a partition: which traffic it holds up. Packets are not lost
// but late, as with TCP: they arrive after the partition has healed, provided
// that their connection has lived so long. A client that closes its end
// meanwhile is not heard either, and its earlier requests are still carried out
// after the healing.
type Cut struct {
	// Direction is the way that is cut; zero is both.
	Direction Direction
	// Sessions are the sessions cut off, also on connections they make later.
	// Empty means all.
	Sessions []int64
	// NewConns is for all new connections. A partition of chosen sessions
	// cannot know which session a new connection will have, and lets it in.
	NewConns NewConns
}

// Partition is a cut in force.
type Partition struct {
	s     *Server
	cut   Cut
	fired int // s.mu
}

// Partition cuts clients off until it is healed. Pings do not come through
// either, so sessions that are cut off long enough expire.
func (s *Server) Partition(cut Cut) *Partition {
	if cut.Direction == 0 {
		cut.Direction = Both
	}
	p := &Partition{s: s, cut: cut}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts = append(s.cuts, p)
	s.wake() // dials that hang may be refused now
	return p
}

// Heal ends the partition. A second Heal does nothing.
func (p *Partition) Heal() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.cuts = slices.DeleteFunc(p.s.cuts, func(q *Partition) bool { return p == q })
	p.s.wake()
}

// Struck reports whether the partition has held anything up so far: a packet of
// those it cuts off, or a new connection.
func (p *Partition) Struck() bool { return p.Fired() > 0 }

// Fired returns how much the partition has held up so far. A packet counts when
// those before it have gone through.
func (p *Partition) Fired() int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.fired
}

// Heal ends all partitions.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts = nil
	s.wake()
}

// cut reports whether a connection's packet is held up, which counts unless it
// is asked about again. mu is held.
func (s *Server) cut(c *conn, d Direction, again bool) bool {
	id := c.claimed
	if c.session != nil {
		id = c.session.id
	}
	for _, p := range s.cuts {
		if p.cut.Direction&d != 0 && (len(p.cut.Sessions) == 0 || slices.Contains(p.cut.Sessions, id)) {
			p.hit(again)
			return true
		}
	}
	return false
}

func (p *Partition) hit(again bool) {
	if !again {
		p.fired++
	}
}

// turnsAway reports whether a new connection is turned away, and counts it if
// so. mu is held.
func (s *Server) turnsAway() bool {
	down := s.closed || s.stopped || s.dialCut(RefuseDial, false)
	if down {
		s.turnedAway++
	}
	return down
}

func (s *Server) dialCut(n NewConns, again bool) bool {
	i := slices.IndexFunc(s.cuts, func(p *Partition) bool { return len(p.cut.Sessions) == 0 && p.cut.NewConns == n })
	if i >= 0 {
		s.cuts[i].hit(again)
	}
	return i >= 0
}

// Follower is a server of the ensemble that runs behind its leader. It is
// joined to the leader by a link of two ordered streams. One carries commits
// and the leader's pings; the other, the clients' writes and syncs, and with
// the answer to each ping, the sessions that the follower has heard from since
// the ping before. The follower itself answers its clients' reads and pings,
// from a tree that may be old; watches fire late, and writes are acknowledged
// when the follower has seen them too. A session may have many writes under
// way; its reads wait for the writes before them. So the leader, which alone
// lets sessions expire, is told of them every half tick, unless the link fails.
type Follower struct {
	s        *Server
	v        *view
	sessions []int64 // empty: all
	touched  map[int64]struct{}
	up, down stream
	pings    time.Time // when the leader sends the next
	counts   LinkCounts
	out      bool // it has lost its leader and serves no client
	stopped  bool
	kick     chan struct{}
	stop     chan struct{}
}

// AddFollower moves sessions, with their connections and watches, to a follower
// that hears from the leader lag late; without sessions it takes all, later
// ones included. A session goes back there when it reconnects, and is refused,
// as by a real follower, while it has seen more than the follower has.
func (s *Server) AddFollower(lag time.Duration, sessions ...int64) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{
		s: s, sessions: sessions, touched: map[int64]struct{}{},
		kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	f.v = &view{tree: s.leader.tree.clone(), watches: newWatches(), follower: f}
	if s.closed {
		f.stopped = true
		return f
	}
	f.down.delay, f.pings = max(lag, 0), time.Now().Add(s.cfg.pingInterval())
	s.followers = append(s.followers, f)
	for c := range s.conns {
		if c.view == s.leader && c.session != nil && f.serves(c.session.id) {
			c.moveTo(f.v)
		}
	}
	s.wg.Go(func() { s.repeat(time.Now(), f.carry, f.kick, f.stop) })
	return f
}

// Zxid is the last transaction that the follower has processed.
func (f *Follower) Zxid() int64 {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.v.tree.zxid
}

// Stop brings the follower up to date and gives its sessions back to the
// leader, watches included. If its link is cut, so are its clients'
// connections.
func (f *Follower) Stop() {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.stopped {
		return
	}
	f.stopped = true
	if f.down.cut {
		f.leave()
	}
	f.drain()
	s.heard(f.touched)
	s.followers = slices.DeleteFunc(s.followers, func(g *Follower) bool { return g == f })
	for c := range s.conns {
		if c.view == f.v {
			c.moveTo(s.leader)
		}
	}
	close(f.stop)
	s.wake()
}

func (f *Follower) serves(session int64) bool {
	return len(f.sessions) == 0 || slices.Contains(f.sessions, session)
}

// viewFor returns the view that a session's connections belong to. mu is held.
func (s *Server) viewFor(session int64) *view {
	for _, f := range s.followers {
		if f.serves(session) {
			return f.v
		}
	}
	return s.leader
}

// moveTo takes a connection and its watches to another view. mu is held.
func (c *conn) moveTo(v *view) {
	for from, to := range map[*watchTable]*watchTable{
		c.view.watches.data: v.watches.data, c.view.watches.child: v.watches.child,
	} {
		for path := range from.conns[c] {
			to.set(path, c, from.paths[path][c])
		}
		from.drop(c)
	}
	if c.session != nil && c.session.server == c.view {
		c.session.server = v
	}
	c.view = v
}

// receive processes a transaction. mu is held.
func (f *Follower) receive(t txn) {
	for _, c := range t.changes {
		f.v.tree.apply(c, t.zxid, t.ms)
	}
	f.v.tree.zxid = t.zxid
	f.s.publish(f.v, t)
}
