package session

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// hosts is the client library's view of the server list: addresses as the
// user wrote them, resolved at each dial. It does not ask the library to pause
// (retryStart), because that costs a fixed second and fails what is queued;
// the dialer paces itself instead.
type hosts struct {
	servers []string

	mu    sync.Mutex
	next  int
	names map[string]*name
}

// name is a server's host name. Each of its addresses is a server.
type name struct{ addresses, next int }

func newHosts(servers []string) *hosts {
	return &hosts{servers: servers, next: rand.IntN(len(servers)), names: map[string]*name{}}
}

func (h *hosts) Init([]string) error { return nil }
func (h *hosts) Len() int            { return len(h.servers) }
func (h *hosts) Connected()          {}

func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	return server, false
}

// count is the number of servers, as far as their names were resolved.
func (h *hosts) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.servers)
	for _, known := range h.names {
		n += known.addresses - 1
	}
	return n
}

// pick returns the address whose turn it is.
func (h *hosts) pick(server string, addresses []string) string {
	slices.Sort(addresses) // a name server may answer in another order each time
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.names[server]
	if known == nil {
		known = &name{next: rand.IntN(len(addresses))}
		h.names[server] = known
	}
	known.addresses = len(addresses)
	known.next++
	return addresses[known.next%len(addresses)]
}

// connect resolves a server's name, connects, and negotiates TLS, each step
// within dialPatience.
func (c *Config) connect(ctx context.Context, hosts *hosts, network, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addr := server
	if c.Lookup != nil {
		addresses, err := within(ctx, func(ctx context.Context) ([]string, error) { return c.Lookup(ctx, host) })
		if err != nil {
			return nil, err
		}
		addr = net.JoinHostPort(hosts.pick(server, addresses), port)
	}
	raw, err := within(ctx, func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, network, addr) })
	if err != nil || c.TLS == nil {
		return raw, err
	}
	config := c.TLS.Clone()
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
