package zkembed

import (
	"slices"
	"sync"
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
	// time-out. (Over TCP the kernel accepts, and silence follows.)
	HangDial NewConns = iota
	// RefuseDial turns new connections away at once.
	RefuseDial
	// AcceptDial accepts new connections and then keeps silent, as a frozen
	// process does.
	AcceptDial
)

// Cut describes a partition: which traffic it holds up. What is sent into it
// is not lost but late, as with TCP: it arrives after the partition has
// healed, provided that its connection has lived so long. A client that
// closes its end meanwhile is not heard either, and what it had sent is still
// carried out after the healing.
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
	s      *Server
	cut    Cut
	heal   sync.Once
	struck bool // s.mu
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
	p.heal.Do(func() {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		p.s.cuts = slices.DeleteFunc(p.s.cuts, func(q *Partition) bool { return p == q })
		p.s.wake()
	})
}

// Struck reports whether the partition has held anything up so far: a packet of
// those it cuts off, or a new connection.
func (p *Partition) Struck() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.struck
}

// Heal ends all partitions.
func (s *Server) Heal() {
	s.mu.Lock()
	cuts := slices.Clone(s.cuts)
	s.mu.Unlock()
	for _, p := range cuts {
		p.Heal()
	}
}

// cut reports whether a connection's packets are held up. mu is held.
func (s *Server) cut(c *conn, d Direction) bool {
	id := c.claimed
	if c.session != nil {
		id = c.session.id
	}
	for _, p := range s.cuts {
		if p.cut.Direction&d != 0 && (len(p.cut.Sessions) == 0 || slices.Contains(p.cut.Sessions, id)) {
			p.struck = true
			return true
		}
	}
	return false
}

// refused reports whether new connections are turned away. mu is held.
func (s *Server) refused() bool { return s.dialCut(RefuseDial) }

func (s *Server) dialCut(n NewConns) bool {
	i := slices.IndexFunc(s.cuts, func(p *Partition) bool { return len(p.cut.Sessions) == 0 && p.cut.NewConns == n })
	if i >= 0 {
		s.cuts[i].struck = true
	}
	return i >= 0
}
