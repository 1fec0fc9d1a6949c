// Package servers finds a server and connects to it.
package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
)

const (
	// An attempt to connect keeps the next server waiting for dialLimit. Then
	// it goes on while others are tried, each of its steps (name server, TCP,
	// TLS) for at most dialPatience. At most dialsAtOnce to each address of a
	// server are under way, so that a server that hangs does not keep the
	// others from being tried.
	dialLimit    = time.Second
	dialPatience = 10 * time.Second
	dialsAtOnce  = 4
)

// dialRace is the search for one connection: the attempts under way, of which
// the first that succeeds ends the others.
type dialRace struct {
	ctx     context.Context
	end     context.CancelFunc
	reached chan Reached
	running map[string]int // by server; guarded by Search.mu
}

// Reached is a connection to a server, found when each server was tried Round
// times before.
type Reached struct {
	net.Conn
	Server string
	Round  int
}

// Connect connects to addr, or to a server that was tried earlier, if that
// accepts first. It waits for a second, or for a sixth of timeout if that is
// less; then it is the next server's turn. A slower attempt goes on while the
// next ones are made. brief says that the connections before did not last,
// saving that the session, and what depends on it, may still be kept.
func (s *Search) Connect(network, addr string, timeout time.Duration, brief, saving bool) (Reached, error) {
	round, pause := s.Pace.next(s.count(), timeout, brief, saving)
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return Reached{}, context.Cause(s.ctx)
		}
	}
	s.Pace.begins()
	failed := make(chan error, 1)
	race, err := s.attempt(network, addr, failed)
	if err != nil {
		return Reached{}, err
	}
	select {
	case r := <-race.reached:
		s.mu.Lock()
		s.race = nil
		s.mu.Unlock()
		race.end()
		r.Round = round
		return r, nil
	case err := <-failed:
		return Reached{}, err // the client library logs the error
	case <-time.After(min(dialLimit, timeout/6)):
		err := fmt.Errorf("%s has not accepted a connection yet", addr)
		s.Failed(addr, err)
		return Reached{}, err
	case <-s.ctx.Done():
		return Reached{}, context.Cause(s.ctx)
	}
}

// attempt begins to connect to addr, unless enough attempts are under way.
func (s *Search) attempt(network, addr string, failed chan<- error) (*dialRace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	race := s.race
	if race == nil {
		race = &dialRace{reached: make(chan Reached), running: map[string]int{}}
		race.ctx, race.end = context.WithCancel(s.ctx)
		s.race = race
	}
	if race.running[addr] >= dialsAtOnce*s.addresses(addr) {
		return race, nil
	}
	race.running[addr]++
	return race, s.run(func() {
		raw, err := s.connect(race.ctx, network, addr)
		s.mu.Lock()
		race.running[addr]--
		s.mu.Unlock()
		if err != nil {
			if race.ctx.Err() == nil {
				s.Failed(addr, err)
			}
			failed <- err
			return
		}
		select {
		case race.reached <- Reached{Conn: raw, Server: addr}:
		case <-race.ctx.Done():
			_ = raw.Close()
		}
	})
}

// Failed notes why the last attempt to connect to a server failed.
func (s *Search) Failed(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble[server] = err
}

// Refused notes that a server does not serve the session, although it has
// opened it. It returns how often in a row that was so.
func (s *Search) Refused(server string, err error) (inRow int) {
	s.Failed(server, err)
	return s.Pace.refused()
}

// Answered notes that a server has answered a request.
func (s *Search) Answered() {
	s.Pace.Answered()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.trouble)
}

// LastErrors returns why the last attempt to connect to each server failed, or
// nil.
func (s *Search) LastErrors() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, server := range s.Servers {
		err := s.trouble[server]
		switch {
		case err == nil:
			continue
		case !strings.Contains(err.Error(), server):
			err = fmt.Errorf("%s: %w", server, err)
		}
		all = append(all, err)
	}
	return calls.Joined(all...)
}

// Config says which servers there are, and how to reach them.
type Config struct {
	Servers []string // host:port each, tried in this order from a random start
	// Lookup resolves a server's name; each of its addresses counts as a
	// server. nil leaves that to Dial.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS returns the configuration for a handshake over what Dial returns; it
	// is called for each. With an error it may return an older one. nil = no
	// TLS.
	TLS  func() (TLS, error)
	Pace *Pace // of the attempts, which several searches may share; nil: one of its own
}

// Search is the search for a server. For the client library it is the list of
// servers: addresses as the user wrote them, resolved at each dial. It does not
// ask the library to pause (retryStart), because that costs a fixed second and
// fails queued requests; [Search.Connect] paces itself instead.
type Search struct {
	Config
	ctx context.Context    // ends it
	run func(func()) error // runs an attempt

	mu      sync.Mutex
	next    int
	names   map[string]*name
	trouble map[string]error // why the last attempt failed, for each server
	race    *dialRace        // for a connection; nil while there is one
}

// name is a server's host name. Each of its addresses is a server.
type name struct{ addresses, next int }

// New returns a search that ends with ctx and has its attempts run by run.
func New(ctx context.Context, c Config, run func(attempt func()) error) *Search {
	if c.Pace == nil {
		c.Pace = new(Pace)
	}
	return &Search{
		Config: c, ctx: ctx, run: run, next: rand.IntN(len(c.Servers)), names: map[string]*name{},
		trouble: map[string]error{},
	}
}

// Init does nothing, nor does Connected: the library expects them.
func (s *Search) Init([]string) error { return nil }

// Connected does nothing.
func (s *Search) Connected() {}

// Len is the number of servers that the user wrote.
func (s *Search) Len() int { return len(s.Servers) }

// Next returns the server whose turn it is.
func (s *Search) Next() (server string, retryStart bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server = s.Servers[s.next]
	s.next = (s.next + 1) % len(s.Servers)
	return server, false
}

// count is the number of servers, as far as their names were resolved.
func (s *Search) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, server := range s.Servers {
		n += s.addresses(server)
	}
	return n
}

// addresses is the number of a server's addresses, as far as its name was
// resolved. s.mu is held.
func (s *Search) addresses(server string) int {
	if known := s.names[server]; known != nil {
		return known.addresses
	}
	return 1
}

// pick returns the address whose turn it is.
func (s *Search) pick(server string, addresses []string) string {
	slices.Sort(addresses) // a name server may answer in another order each time
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.names[server]
	if known == nil {
		known = &name{next: rand.IntN(len(addresses))}
		s.names[server] = known
	}
	known.addresses = len(addresses)
	known.next++
	return addresses[known.next%len(addresses)]
}

// connect resolves a server's name, connects, and negotiates TLS, each step
// within dialPatience.
func (s *Search) connect(ctx context.Context, network, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addr := server
	if s.Lookup != nil {
		addresses, err := within(ctx, func(ctx context.Context) ([]string, error) { return s.Lookup(ctx, host) })
		if err != nil {
			return nil, err
		}
		addr = net.JoinHostPort(s.pick(server, addresses), port)
	}
	raw, err := within(ctx, func(ctx context.Context) (net.Conn, error) { return s.Dial(ctx, network, addr) })
	if err != nil || s.TLS == nil {
		return raw, err
	}
	current, err := s.TLS()
	if current.Config == nil {
		_ = raw.Close()
		return nil, err
	}
	config := current.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	_, failed := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, conn.HandshakeContext(ctx) })
	if failed != nil {
		_ = raw.Close()
		if err != nil {
			failed = fmt.Errorf("%w (with the certificates from before: %w)", failed, err)
		}
		return nil, failed
	}
	return conn, nil
}

// within gives one step of connecting its time.
func within[T any](ctx context.Context, step func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	return step(ctx)
}
