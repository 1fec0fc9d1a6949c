package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// hosts is the client library's view of the server list: addresses as the
// user wrote them, resolved at each dial. It does not ask the library to pause
// (retryStart), because that costs a fixed second and fails what is queued;
// the dialer paces itself instead. The exception is a session that is over:
// only in that pause does the library notice that it was closed.
type hosts struct {
	ending  context.Context
	servers []string
	mu      sync.Mutex
	next    int
}

func newHosts(ending context.Context, servers []string) *hosts {
	return &hosts{ending: ending, servers: servers, next: rand.IntN(len(servers))}
}

func (h *hosts) Init([]string) error { return nil }
func (h *hosts) Len() int            { return len(h.servers) }
func (h *hosts) Connected()          {}

func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	return server, h.ending.Err() != nil
}

var errNoMoreDials = errors.New("the session is over: no further connection")

// dial is the client library's dialer for s.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	round, err := s.pace()
	if err != nil {
		return nil, err
	}
	limit := min(dialLimit, s.Timeout()/handshakeShare)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stop := context.AfterFunc(s.ending, cancel)
	defer stop()
	raw, err := s.cfg.Dial(ctx, network, addr)
	if err != nil {
		s.log.Debug("cannot connect", "server", addr, "err", err)
		s.mu.Lock()
		s.trouble = err
		s.mu.Unlock()
		return nil, err
	}
	// In the first round a hung server must not keep the others waiting; later
	// it may be the way that is slow.
	w := newWire(raw, s, s.clock, s.cfg.Auth, min(s.Timeout()/stallShare, time.Duration(1+round)*s.Timeout()/handshakeShare))
	if !s.adopt(w) {
		_ = raw.Close()
		return nil, errNoMoreDials
	}
	return w, nil
}

// pace lets the first attempt at each server through at once and then backs
// off, up to a second or a fortieth of the time-out, until a server has answered
// a request: little of a window must be spent waiting for a server that is back.
// It tells how often every server was tried before.
func (s *Session) pace() (round int, err error) {
	s.mu.Lock()
	round = s.attempts / len(s.cfg.Servers)
	s.attempts++
	timeout := s.timeout
	s.mu.Unlock()
	if round == 0 && s.ending.Err() == nil {
		return round, nil
	}
	pause := min(25*time.Millisecond<<min(round, 6), time.Second, timeout/40)
	timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return round, nil
	case <-s.ending.Done():
		return round, errNoMoreDials
	}
}
