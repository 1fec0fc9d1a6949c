package zkembed

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"time"
)

// session outlives its connections. Guarded by Server.mu, but for the fields
// that never change.
type session struct {
	id      int64
	passwd  [16]byte
	timeout time.Duration
	expires time.Time
	conn    *conn // nil while disconnected
	server  *view // where it connected last, by the leader
	ended   bool
	moved   bool // the next request finds that the session has moved
	counts  Counts
}

// firstSessionID is random, so no session of one server is known to another.
// The top byte is a server id: never 0, never the sign, never 0xff.
func firstSessionID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return 1<<56 | int64(binary.BigEndian.Uint64(b[:])>>24)<<16
}

// newSession starts a session; it takes a zxid. mu is held.
func (s *Server) newSession(ms int32) *session {
	s.nextID++
	sess := &session{id: s.nextID, timeout: s.clamp(ms), counts: Counts{}}
	_, _ = rand.Read(sess.passwd[:])
	s.sessions[sess.id] = sess
	s.extend(sess)
	s.count(sess, OpCreateSession)
	s.commit(s.begin())
	signal(s.kick)
	s.cfg.log.Debug("session created", "session", sessionName(sess.id), "timeout", sess.timeout)
	return sess
}

// resume finds the session that a reconnecting client names, or nil if there is
// none. mu is held.
func (s *Server) resume(id int64, passwd []byte, ms int32) *session {
	sess := s.sessions[id]
	if sess == nil {
		return nil
	}
	// An older connection goes first, whether the password is right or not.
	sess.cutOff()
	if subtle.ConstantTimeCompare(sess.passwd[:], passwd) != 1 {
		return nil
	}
	sess.timeout, sess.moved = s.clamp(ms), false
	s.extend(sess)
	signal(s.kick)
	return sess
}

func (s *Server) clamp(ms int32) time.Duration {
	return min(max(time.Duration(ms)*time.Millisecond, s.cfg.minTime), s.cfg.maxTime)
}

// extend moves the session's end to the first tick after its timeout.
func (s *Server) extend(sess *session) {
	end := time.Since(s.started) + sess.timeout
	sess.expires = s.started.Add((end/s.cfg.tick + 1) * s.cfg.tick)
}

// endSession deletes the session and its ephemeral nodes under one zxid. mu
// is held.
func (s *Server) endSession(sess *session) {
	t := s.begin()
	for _, path := range s.leader.tree.ephemeralsOf(sess.id) {
		t.changes = append(t.changes, s.leader.tree.deletion(path))
	}
	for _, c := range t.changes {
		s.leader.tree.apply(c, t.zxid, t.ms)
	}
	t.changes = append(t.changes, change{op: OpCloseSession, session: sess.id})
	sess.ended = true
	delete(s.sessions, sess.id)
	s.commit(t)
}

// expire ends the sessions whose time has come, and returns the nearest end of
// the others; zero without one, so an idle server does nothing. mu is held.
func (s *Server) expire() (next time.Time) {
	if s.stopped {
		return next
	}
	now := time.Now()
	for _, sess := range s.sessions {
		switch {
		case !now.Before(sess.expires):
			s.cfg.log.Debug("session expired", "session", sessionName(sess.id))
			s.endSession(sess)
		case next.IsZero() || sess.expires.Before(next):
			next = sess.expires
		}
	}
	return next
}

// sessionName writes a session id as ZooKeeper does.
func sessionName(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
