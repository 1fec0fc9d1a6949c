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

// List is the client library's view of the servers: addresses as the user wrote
// them, resolved at each dial. It does not ask the library to pause
// (retryStart), because that costs a fixed second and fails what is queued;
// [Search.Find] paces itself instead.
type List struct {
	Config

	mu    sync.Mutex
	next  int
	names map[string]*name
}

// name is a server's host name. Each of its addresses is a server.
type name struct{ addresses, next int }

// NewList returns the list of a configuration.
func NewList(c Config) *List {
	return &List{Config: c, next: rand.IntN(len(c.Servers)), names: map[string]*name{}}
}

// Init does nothing.
func (l *List) Init([]string) error { return nil }

// Len is the number of servers that the user wrote.
func (l *List) Len() int { return len(l.Servers) }

// Connected does nothing.
func (l *List) Connected() {}

// Next returns the server whose turn it is.
func (l *List) Next() (server string, retryStart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	server = l.Servers[l.next]
	l.next = (l.next + 1) % len(l.Servers)
	return server, false
}

// count is the number of servers, as far as their names were resolved.
func (l *List) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.Servers)
	for _, known := range l.names {
		n += known.addresses - 1
	}
	return n
}

// pick returns the address whose turn it is.
func (l *List) pick(server string, addresses []string) string {
	slices.Sort(addresses) // a name server may answer in another order each time
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.names[server]
	if known == nil {
		known = &name{next: rand.IntN(len(addresses))}
		l.names[server] = known
	}
	known.addresses = len(addresses)
	known.next++
	return addresses[known.next%len(addresses)]
}

// Connect resolves a server's name, connects, and negotiates TLS, each step
// within dialPatience.
func (l *List) Connect(ctx context.Context, network, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addr := server
	if l.Lookup != nil {
		addresses, err := within(ctx, func(ctx context.Context) ([]string, error) { return l.Lookup(ctx, host) })
		if err != nil {
			return nil, err
		}
		addr = net.JoinHostPort(l.pick(server, addresses), port)
	}
	raw, err := within(ctx, func(ctx context.Context) (net.Conn, error) { return l.Dial(ctx, network, addr) })
	if err != nil || l.TLS == nil {
		return raw, err
	}
	config := l.TLS.Clone()
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
