package zkembed

import (
	"math/rand/v2"
	"time"
)

// stream is one direction of a follower's link. Parcels arrive in order.
type stream struct {
	parcels []parcel
	delay   time.Duration
	silent  bool // parcels are held back
	cut     bool // parcels are lost
}

// parcel is something on its way.
type parcel struct {
	due     time.Time
	touches int // sessions that it reports
	arrive  func()
}

// LinkCounts counts what the faults of a follower's link did.
type LinkCounts struct {
	Delayed    int // packets that a delay made late
	Held       int // packets held back by a silence
	Lost       int // packets lost by a cut
	Unreported int // sessions, each time their report was lost by a cut
}

// Delay makes what is sent in a direction from now on arrive so much later.
func (f *Follower) Delay(d Direction, by time.Duration) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, st := range f.streams(d) {
		st.delay = max(by, 0)
	}
}

// Silence holds back all that is sent in a direction, to arrive in order when
// the silence ends: by a later call without that direction (Silence(0) for
// both), or by [Follower.Rejoin]. Neither end notices.
func (f *Follower) Silence(d Direction) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.up.silent, f.down.silent = d&ToLeader != 0, d&ToFollower != 0
	signal(f.kick)
}

// Isolate cuts the follower off from its leader, for a silence of both
// directions. It goes on serving reads and answering pings, but it learns of no
// commit, writes and syncs hang, and the leader hears nothing of its sessions
// and lets them expire: exactly what makes a client believe too long that it
// still holds a lock. (A real follower gives up after syncLimit ticks; this one
// waits for [Follower.Rejoin].)
func (f *Follower) Isolate() { f.Silence(Both) }

// Cut breaks the link. What is under way in a direction of d is lost, and so is
// all that is sent there afterwards: a request whose answer a client gets later
// may never have been reported to the leader. What the leader has sent in the
// other direction still arrives, also out of a silence, and then the follower
// learns that its link is gone: it cuts its clients' connections, and turns
// them away until [Follower.Rejoin].
func (f *Follower) Cut(d Direction) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.stopped || f.out || f.down.cut {
		return
	}
	for _, st := range f.streams(d) {
		for _, p := range st.parcels {
			f.lost(p)
		}
		st.parcels, st.cut = nil, true
	}
	if f.down.cut {
		f.leave()
		return
	}
	f.send(ToFollower, parcel{arrive: f.leave})
	f.down.cut = true // the leader has noticed
}

// Rejoin ends silence. Held parcels arrive, and writes that hung are carried
// out. If the link was cut, it is made anew, and the follower is brought up to
// date.
func (f *Follower) Rejoin() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.up.silent, f.down.silent = false, false
	if !f.stopped && (f.out || f.down.cut) {
		f.drain()
		f.join()
	}
	signal(f.kick)
}

// Link returns what the faults of the follower's link have done so far.
func (f *Follower) Link() LinkCounts {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.counts
}

func (f *Follower) streams(d Direction) (s []*stream) {
	if d&ToLeader != 0 {
		s = append(s, &f.up)
	}
	if d&ToFollower != 0 {
		s = append(s, &f.down)
	}
	return s
}

// send puts a parcel on its way. mu is held.
func (f *Follower) send(d Direction, p parcel) {
	st := f.streams(d)[0]
	switch {
	case f.out || st.cut && d == ToFollower: // the sender knows
	case st.cut:
		f.lost(p)
	default:
		p.due = time.Now().Add(st.delay)
		st.parcels = append(st.parcels, p)
		switch {
		case st.silent:
			f.counts.Held++
		case st.delay > 0:
			f.counts.Delayed++
		}
		signal(f.kick)
	}
}

func (f *Follower) lost(p parcel) {
	f.counts.Lost++
	f.counts.Unreported += p.touches
}

// ping sends a ping. When it arrives, the follower reports the sessions it has
// heard from since the ping before.
func (f *Follower) ping() {
	f.send(ToFollower, parcel{arrive: func() {
		heard := f.touched
		f.touched = map[int64]struct{}{}
		f.send(ToLeader, parcel{touches: len(heard), arrive: func() { f.s.heard(heard) }})
	}})
	f.pings = time.Now().Add(f.s.cfg.pingInterval())
}

// pingInterval is half a tick, and perhaps some lateness.
func (c config) pingInterval() time.Duration {
	late := time.Duration(0)
	if c.pingLateness > 0 {
		late = rand.N(c.pingLateness)
	}
	return max(c.tick/2, time.Millisecond) + late
}

// heard keeps sessions alive that a follower has reported. mu is held.
func (s *Server) heard(sessions map[int64]struct{}) {
	for id := range sessions {
		if sess := s.sessions[id]; sess != nil {
			s.extend(sess)
		}
	}
}

// carry delivers what is due, and returns when to look again. mu is held.
func (f *Follower) carry() (next time.Time) {
	if !time.Now().Before(f.pings) {
		f.ping()
	}
	for f.up.deliver(time.Now()) || f.down.deliver(time.Now()) {
	}
	next = f.pings
	for _, st := range f.streams(Both) {
		if len(st.parcels) > 0 && !st.silent && st.parcels[0].due.Before(next) {
			next = st.parcels[0].due
		}
	}
	return next
}

// deliver delivers the next parcel if it is due.
func (st *stream) deliver(now time.Time) bool {
	if st.silent || len(st.parcels) == 0 || now.Before(st.parcels[0].due) {
		return false
	}
	st.next()
	return true
}

func (st *stream) next() {
	p := st.parcels[0]
	st.parcels = st.parcels[1:]
	p.arrive()
}

// drain delivers everything immediately. mu is held.
func (f *Follower) drain() {
	for _, st := range [...]*stream{&f.up, &f.down, &f.up} {
		for len(st.parcels) > 0 {
			st.next()
		}
	}
}

// leave has a follower that lost its leader cut its clients' connections, and
// serve no client. mu is held.
func (f *Follower) leave() {
	f.out = true
	clear(f.touched)
	for c := range f.s.conns {
		if c.view == f.v {
			c.finish() // with the acknowledgements that came just before
		}
	}
}

// join makes the link anew and brings the follower up to date. mu is held.
func (f *Follower) join() {
	for _, st := range f.streams(Both) {
		st.parcels, st.cut = nil, false
	}
	f.v.tree, f.out = f.s.leader.tree.clone(), false
	f.pings = time.Now().Add(f.s.cfg.pingInterval())
}
