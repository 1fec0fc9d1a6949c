package zkembed

import (
	"slices"
	"time"
)

// Follower is a server of the ensemble that runs behind its leader. The
// sessions at it read an old tree, and their watches fire late; their writes
// are carried out at once but acknowledged late, when the follower has seen
// them too; Sync waits until it has caught up with what was committed before.
// Pings it answers by itself. The leader hears which sessions are alive every
// half tick.
type Follower struct {
	s        *Server
	v        *view
	lag      time.Duration
	sessions []int64 // empty: all
	pending  []pendingTxn
	touched  map[int64]struct{}
	cutOff   bool
	stopped  bool
	kick     chan struct{}
	stop     chan struct{}
}

type pendingTxn struct {
	txn
	due time.Time
}

// AddFollower moves sessions, with their connections and watches, to a
// follower that runs lag behind; without sessions it takes everybody, those
// included that are still to come. A session goes back there when it
// reconnects, and is refused, as by a real follower, while it has seen more
// than the follower has.
func (s *Server) AddFollower(lag time.Duration, sessions ...int64) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{
		s: s, lag: max(lag, 0), sessions: sessions, touched: map[int64]struct{}{},
		kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	f.v = &view{tree: s.leader.tree.clone(), watches: newWatches(), follower: f}
	if s.closed {
		f.stopped = true
		return f
	}
	s.followers = append(s.followers, f)
	for c := range s.conns {
		if c.view == s.leader && c.session != nil && f.serves(c.session.id) {
			c.moveTo(f.v)
		}
	}
	s.wg.Go(f.run)
	return f
}

// SetLag changes how far the follower runs behind, for what is committed from
// now on.
func (f *Follower) SetLag(lag time.Duration) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.lag = max(lag, 0)
}

// Isolate cuts the follower off from its leader. It goes on serving reads and
// answering pings, but it learns of no commit, writes and syncs hang, and the
// leader hears nothing of its sessions and lets them expire: exactly what
// makes a client believe too long that it still holds a lock. (A real
// follower gives up after syncLimit ticks; this one waits for [Follower.Rejoin].)
func (f *Follower) Isolate() { f.isolate(true) }

// Rejoin ends the isolation: the follower catches up at once, and writes that
// hung are carried out.
func (f *Follower) Rejoin() { f.isolate(false) }

func (f *Follower) isolate(off bool) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if off {
		clear(f.touched)
	}
	f.cutOff = off && !f.stopped
	f.catchUp(time.Now())
	f.s.wake()
	signal(f.kick)
}

// Zxid is the last transaction that the follower has processed.
func (f *Follower) Zxid() int64 {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.v.tree.zxid
}

// Stop brings the follower up to date and hands its sessions back to the
// leader, watches included.
func (f *Follower) Stop() {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.stopped {
		return
	}
	f.cutOff, f.stopped = false, true
	for i := range f.pending {
		f.pending[i].due = time.Time{}
	}
	f.catchUp(time.Now())
	f.report()
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

// viewFor is where a session's connections belong. mu is held.
func (s *Server) viewFor(session int64) *view {
	for _, f := range s.followers {
		if f.serves(session) {
			return f.v
		}
	}
	return s.leader
}

func (v *view) isolated() bool { return v.follower != nil && v.follower.cutOff }

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
	c.view = v
}

// receive takes a transaction from the leader. mu is held.
func (f *Follower) receive(t txn) {
	f.pending = append(f.pending, pendingTxn{t, time.Now().Add(f.lag)})
	signal(f.kick)
}

// catchUp processes what is due. mu is held.
func (f *Follower) catchUp(now time.Time) {
	for len(f.pending) > 0 && !f.cutOff && !now.Before(f.pending[0].due) {
		t := f.pending[0].txn
		f.pending = f.pending[1:]
		for _, c := range t.changes {
			f.v.tree.apply(c, t.zxid, t.ms)
		}
		f.v.tree.zxid = t.zxid
		f.s.publish(f.v, t)
		f.v.release()
	}
}

// release runs those who waited for what the view has processed now.
func (v *view) release() {
	for len(v.waiters) > 0 && v.waiters[0].zxid <= v.tree.zxid {
		w := v.waiters[0]
		v.waiters = v.waiters[1:]
		w.run()
	}
}

// report tells the leader which sessions were heard. mu is held.
func (f *Follower) report() {
	if f.cutOff {
		clear(f.touched)
	}
	for id := range f.touched {
		if sess := f.s.sessions[id]; sess != nil {
			f.s.extend(sess)
		}
	}
	clear(f.touched)
}

func (f *Follower) run() {
	report := time.NewTicker(max(f.s.cfg.tick/2, time.Millisecond))
	defer report.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.s.mu.Lock()
		f.catchUp(time.Now())
		timer.Stop()
		if len(f.pending) > 0 && !f.cutOff {
			timer.Reset(time.Until(f.pending[0].due))
		}
		f.s.mu.Unlock()
		select {
		case <-timer.C:
		case <-f.kick:
		case <-report.C:
			f.s.mu.Lock()
			f.report()
			f.s.mu.Unlock()
		case <-f.stop:
			return
		case <-f.s.done:
			return
		}
	}
}
