package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

var errNoMoreDials = errors.New("the session is over: no further connection")

// hunt is the search for one connection: the attempts under way, of which the
// first that succeeds ends the others.
type hunt struct {
	ctx     context.Context
	end     context.CancelFunc
	reached chan reached
	running int // guarded by Session.mu
}

// reached is a connection to a server.
type reached struct {
	net.Conn
	server string
}

// dial is the client library's dialer for s. The connection that it returns can
// be one to a server that was tried before addr, and was slower to accept it.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if s.ending.Err() != nil {
		near, far := net.Pipe()
		s.parting.Go(func() { wire.Part(far, s.parted) })
		return near, nil
	}
	round, err := s.pace()
	if err != nil {
		return nil, err
	}
	raw, err := s.reach(network, addr)
	if err != nil {
		return nil, err // the client library tells the log
	}
	s.mu.Lock()
	o := wire.Options{
		Clock: s.clock, Patient: s.busy, Seen: s.seen, Asked: &s.asked, Sizes: s.cfg.sizes,
		// In the first round a hung server must not keep the others waiting;
		// later the network may be what is slow.
		Limit: min(s.timeout/2, time.Duration(1+round)*s.timeout/handshakeShare),
	}
	s.mu.Unlock()
	c := wire.New(raw.Conn, tap{s}, o)
	if !s.adopt(c, raw.server) {
		_ = raw.Close()
		return nil, errNoMoreDials
	}
	return c, nil
}

// pace lets the first attempt at each server through immediately, unless
// connections do not last. Then it backs off, up to a second or a fortieth of
// the time-out, until a server has answered a request: little of a window must
// be spent waiting for a server that is back. It returns how often every server
// was tried before.
func (s *Session) pace() (round int, err error) {
	s.mu.Lock()
	round = s.attempts / s.hosts.count()
	s.attempts++
	timeout, brief := s.timeout, s.brief
	s.mu.Unlock()
	if round == 0 && !brief {
		return round, nil
	}
	pause := min(backOff<<min(round, 6), time.Second, timeout/40)
	timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return round, nil
	case <-s.ending.Done():
		return round, errNoMoreDials
	}
}

// reach waits for a connection, to addr or to a server that was tried before,
// for as long as the others need not be kept waiting. An attempt that takes
// longer goes on while the next ones are made.
func (s *Session) reach(network, addr string) (reached, error) {
	failed := make(chan error, 1)
	h, err := s.attempt(network, addr, failed)
	if err != nil {
		return reached{}, err
	}
	timer := time.NewTimer(min(dialLimit, s.Timeout()/handshakeShare))
	defer timer.Stop()
	select {
	case raw := <-h.reached:
		s.mu.Lock()
		s.hunt = nil
		s.mu.Unlock()
		h.end()
		return raw, nil
	case err := <-failed:
		return reached{}, err
	case <-timer.C:
		err := fmt.Errorf("%s has not accepted a connection yet", addr)
		s.troubled(addr, err)
		return reached{}, err
	case <-s.ending.Done():
		return reached{}, errNoMoreDials
	}
}

// attempt begins to connect to addr, unless enough attempts are under way.
func (s *Session) attempt(network, addr string, failed chan<- error) (*hunt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hunt
	if h == nil {
		h = &hunt{reached: make(chan reached)}
		h.ctx, h.end = context.WithCancel(s.ending)
		s.hunt = h
	}
	if h.running >= dialsAtOnce*s.hosts.count() {
		return h, nil
	}
	h.running++
	return h, s.begin(func() {
		raw, err := s.cfg.connect(h.ctx, s.hosts, network, addr)
		s.mu.Lock()
		h.running--
		s.mu.Unlock()
		if err != nil {
			if h.ctx.Err() == nil {
				s.troubled(addr, err)
			}
			failed <- err
			return
		}
		select {
		case h.reached <- reached{raw, addr}:
		case <-h.ctx.Done():
			_ = raw.Close()
		}
	})
}

// troubled notes why the last attempt to connect to a server failed.
func (s *Session) troubled(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble[server] = err
}
