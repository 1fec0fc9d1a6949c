package zkembed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Dial connects in memory, within timeout; zero is no limit. It has the
// signature of go-zookeeper's Dialer; see [Server.DialContext].
func (s *Server) Dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return s.DialContext(ctx, network, addr)
}

// DialContext connects in memory until ctx ends. It has the signature of
// [net.Dialer.DialContext]; the network and address are not looked at. Inside a
// testing/synctest bubble it is the way to connect.
func (s *Server) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	for again := false; ; again = true {
		switch err := ctx.Err(); {
		case errors.Is(err, context.DeadlineExceeded):
			return fail(os.ErrDeadlineExceeded) // as of net.Dialer
		case err != nil:
			return fail(err)
		}
		s.mu.Lock()
		down, changed := s.turnsAway(), s.changed
		hangs := !down && s.dialCut(HangDial, again)
		if !down && !hangs {
			near, far := net.Pipe()
			s.wg.Go(func() { s.ServeConn(far) })
			s.mu.Unlock()
			return near, nil
		}
		s.mu.Unlock()
		if down {
			return fail(syscall.ECONNREFUSED)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.done:
		}
	}
}

// onSession does something to a live session.
func (s *Server) onSession(id int64, do func(*session)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil {
		return fmt.Errorf("zkembed: no session %s", sessionName(id))
	}
	do(sess)
	return nil
}

// ExpireSession ends a session immediately, as if it had not been heard of for
// its timeout: its ephemeral nodes go, and its connection is closed.
func (s *Server) ExpireSession(id int64) error { return s.onSession(id, s.endSession) }

// MoveSession cuts the session's connection at its next request, which is
// neither carried out nor answered, as if the session had moved to another
// server. Only the request that closes the session is carried out. A reconnect
// takes the session up again. For the error see [ReplyError] and
// [CodeSessionMoved].
func (s *Server) MoveSession(id int64) error {
	return s.onSession(id, func(sess *session) { sess.moved = true })
}

// DropConn cuts a session's connection; the session stays until it expires.
// It is no error if the session has no connection.
func (s *Server) DropConn(id int64) error { return s.onSession(id, (*session).cutOff) }

// DropConns cuts all connections and returns how many there were.
func (s *Server) DropConns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := 0
	for c := range s.conns {
		if c.kill() {
			dropped++
		}
	}
	return dropped
}

// Stop takes the server down as a crash would: connections and watches go, new
// connections are refused (over TCP: accepted by the kernel and reset), and no
// session expires and nothing is reaped, since the clock of the sessions
// stands. The tree, the sessions and the zxid are kept for [Server.Resume].
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, f := range s.followers {
		f.up.parcels, f.down.parcels = nil, nil
		f.leave()
	}
	for c := range s.conns {
		c.kill()
	}
	s.wake()
}

// TurnedAway is how many connections were refused since the start: while the
// server was down, or a partition refused them.
func (s *Server) TurnedAway() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turnedAway
}

// Resume starts a stopped server again. Every session gets its whole timeout
// anew, as after a restart of a real server.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
	for _, sess := range s.sessions {
		s.extend(sess)
	}
	for _, f := range s.followers {
		if !f.up.silent && !f.down.silent {
			f.join()
		}
	}
	signal(s.kick)
	s.wake()
}

// Restart stops the server, waits, and resumes it. It returns when the server
// is up again, or has been closed.
func (s *Server) Restart(downtime time.Duration) {
	s.Stop()
	timer := time.NewTimer(downtime)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.Resume()
	case <-s.done:
	}
}

// Reap removes, each under its own zxid, the containers that have lost their
// last child and the TTL nodes that were not written for their time to live,
// and returns how many it removed. A stopped server removes none.
func (s *Server) Reap() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reap()
}

// reap is Reap, with mu held.
func (s *Server) reap() int {
	if s.stopped {
		return 0
	}
	tree, removed := s.leader.tree, 0
	for _, path := range tree.paths() {
		n := tree.nodes[path]
		if n == nil || !n.expired(s.clock().UnixMilli()) {
			continue
		}
		t := s.begin()
		t.changes = []change{tree.deletion(path)}
		tree.apply(t.changes[0], t.zxid, t.ms)
		s.commit(t)
		removed++
	}
	return removed
}

// ShiftClock has the leader's clock differ by d from this process's, as the
// times in nodes' Stats show it, until the next call: the clock of a server
// that is wrong. Sessions expire as before.
func (s *Server) ShiftClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = d
}

// clock is the leader's. s.mu is held.
func (s *Server) clock() time.Time { return time.Now().Add(s.ahead) }

func (s *Server) nextReap() time.Time { return time.Now().Add(s.cfg.reaperInterval) }
