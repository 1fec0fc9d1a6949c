// Package servers finds a server and connects to it.
package servers

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// Config says which servers there are, and how to reach them.
type Config struct {
	Servers []string // host:port each, tried in this order from a random start
	// Lookup resolves a server's name; each of its addresses counts as a
	// server. nil leaves that to Dial.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS    *tls.Config // over what Dial returns; nil = none
}

// Search is the search for a server. For the client library it is the list of
// servers: addresses as the user wrote them, resolved at each dial. It does not
// ask the library to pause (retryStart), because that costs a fixed second and
// fails what is queued; [Search.Find] paces itself instead.
type Search struct {
	Config
	ctx context.Context    // ends it
	run func(func()) error // runs an attempt

	mu       sync.Mutex
	next     int
	names    map[string]*name
	attempts int              // since a server answered
	trouble  map[string]error // why the last of them failed, for each server
	hunt     *hunt            // for a connection; nil while there is one
}

// name is a server's host name. Each of its addresses is a server.
type name struct{ addresses, next int }

// New returns a search that ends with ctx, and whose attempts run runs.
func New(ctx context.Context, c Config, run func(attempt func()) error) *Search {
	return &Search{Config: c, ctx: ctx, run: run, next: rand.IntN(len(c.Servers)), names: map[string]*name{}, trouble: map[string]error{}}
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

// count is the number of servers, as far as their names were resolved; s.mu is
// held.
func (s *Search) count() int {
	n := len(s.Servers)
	for _, known := range s.names {
		n += known.addresses - 1
	}
	return n
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
	config := s.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	_, err = within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, conn.HandshakeContext(ctx) })
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// within gives one step of connecting its time.
func within[T any](ctx context.Context, step func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	return step(ctx)
}
