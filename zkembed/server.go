package zkembed

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"
)

// Server is one ZooKeeper server in this process. Its methods may be called
// from any goroutine.
type Server struct {
	cfg     config
	ln      net.Listener
	secure  net.Listener // speaks TLS
	started time.Time
	done    chan struct{} // closed by Close
	kick    chan struct{} // a session's deadline may have become nearer
	wg      sync.WaitGroup

	mu        sync.Mutex
	leader    *view
	followers []*Follower
	sessions  map[int64]*session
	nextID    int64
	conns     map[*conn]struct{}
	counts    Counts
	faults    []*Fault
	cuts      []*Partition
	changed   chan struct{} // closed and replaced when a condition that connections wait for may have changed
	ahead     time.Duration // of this process's clock, the times in nodes' Stats
	stopped   bool
	closed    bool

	turnedAway int // mu
}

// Start starts a server with an empty tree. It runs until [Server.Close].
func Start(opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, started: time.Now(), done: make(chan struct{}), kick: make(chan struct{}, 1),
		leader: &view{tree: newTree(), watches: newWatches()}, sessions: map[int64]*session{},
		nextID: firstSessionID(), conns: map[*conn]struct{}{}, counts: Counts{}, changed: make(chan struct{}),
	}
	if cfg.addr != "" {
		if s.ln, err = net.Listen("tcp", cfg.addr); err != nil {
			return nil, fmt.Errorf("zkembed: %w", err)
		}
		s.wg.Go(func() { s.accept(s.ln) })
	}
	if cfg.tls != nil {
		if s.secure, err = net.Listen("tcp", cfg.secureAddr); err != nil {
			return nil, errors.Join(fmt.Errorf("zkembed: %w", err), s.Close())
		}
		s.wg.Go(func() { s.accept(tls.NewListener(s.secure, cfg.tls)) })
	}
	s.wg.Go(func() { s.repeat(time.Time{}, s.expire, s.kick, nil) })
	if cfg.reaperInterval > 0 {
		s.wg.Go(func() { s.repeat(s.nextReap(), func() time.Time { s.reap(); return s.nextReap() }, nil, nil) })
	}
	return s, nil
}

// repeat calls do, with mu held, at the time next and then at the time that it
// returns, unless that is zero, and after every kick, until stop or done is
// closed.
func (s *Server) repeat(next time.Time, do func() (next time.Time), kick, stop <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
		case <-kick:
		case <-stop:
			return
		case <-s.done:
			return
		}
		s.mu.Lock()
		next = do()
		s.mu.Unlock()
	}
}

// Addr is host:port of the TCP listener. Without one it is "127.0.0.1:2181", a
// name to dial for clients that use [Server.Dial].
func (s *Server) Addr() string {
	if s.ln == nil {
		return "127.0.0.1:2181"
	}
	return s.ln.Addr().String()
}

// SecureAddr is host:port of the listener that speaks TLS; "" without
// [WithTLS].
func (s *Server) SecureAddr() string {
	if s.secure == nil {
		return ""
	}
	return s.secure.Addr().String()
}

// ConnectString is what ZooKeeper clients take to find this server.
func (s *Server) ConnectString() string { return s.Addr() }

// Close cuts every connection, forgets the tree, and returns when every
// goroutine of the server has ended. A second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	close(s.done)
	for c := range s.conns {
		c.kill()
	}
	s.mu.Unlock()
	var err error
	for _, ln := range []net.Listener{s.ln, s.secure} {
		if ln != nil {
			err = errors.Join(err, ln.Close())
		}
	}
	s.wg.Wait()
	return err
}

func (s *Server) accept(ln net.Listener) {
	for {
		nc, err := ln.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond): // out of file descriptors, say
				continue
			}
		}
		s.wg.Go(func() { s.ServeConn(nc) })
	}
}

// ServeConn serves one connection, for instance one end of a [net.Pipe], and
// returns when the connection has ended. It closes nc.
func (s *Server) ServeConn(nc net.Conn) {
	remote := remoteOf(nc)
	c := &conn{
		s: s, nc: nc, remote: remote, in: newQueue(), out: newQueue(),
		dead: make(chan struct{}), quit: make(chan struct{}), since: time.Now(),
		ids: []identity{{"ip", hostOf(remote)}}, view: s.leader,
	}
	s.mu.Lock()
	if s.turnsAway() {
		s.mu.Unlock()
		reset(nc)
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1) // ServeConn may run on the caller's goroutine
	s.mu.Unlock()
	defer s.wg.Done()
	c.serve()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// remoteOf names the other end, also for connections that do not.
func remoteOf(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "unknown"
}

// hostOf is the client's address; in-memory pipes count as local.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return "127.0.0.1"
}

// reset closes a connection in a way that its client sees a refusal rather than
// an orderly end, where the transport can distinguish the two.
func reset(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = nc.Close()
}

// wake makes every connection that waits look again. mu is held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

type config struct {
	addr           string
	secureAddr     string
	tls            *tls.Config
	passwords      map[string]string // by user, for SASL; nil without it
	tick           time.Duration
	minTime        time.Duration
	maxTime        time.Duration
	reaperInterval time.Duration
	pingLateness   time.Duration
	maxPacket      int
	log            *slog.Logger
}

// Option changes how a [Server] runs.
type Option func(*config) error

// WithAddr makes the server listen on a TCP address, for instance
// "127.0.0.1:0" for a free port, which is the default. The empty address
// means no listener: connections then come by [Server.Dial] and
// [Server.ServeConn] only.
func WithAddr(addr string) Option {
	return func(c *config) error {
		c.addr = addr
		return nil
	}
}

// WithTLS makes the server listen by TLS on a second address, as ZooKeeper's
// secureClientPort does; see [Server.SecureAddr]. A client's certificate, if
// the configuration asks for one, is an identity: its subject, in scheme x509.
func WithTLS(addr string, tls *tls.Config) Option {
	return option(tls != nil, func(c *config) { c.secureAddr, c.tls = addr, tls }, "nil TLS configuration")
}

// WithTick sets ZooKeeper's tickTime, 2 s unless set. Sessions expire on the
// tick's grid, and the default bounds of session timeouts are 2 and 20 ticks.
func WithTick(tick time.Duration) Option {
	return option(tick >= time.Millisecond, func(c *config) { c.tick = tick }, "tick %v is below 1ms", tick)
}

// WithSessionTimeouts limits the timeouts that sessions get. Zero leaves a
// bound at its default of 2 or 20 ticks.
func WithSessionTimeouts(lowest, highest time.Duration) Option {
	return option(
		lowest >= 0 && highest >= 0 && max(lowest, highest) <= math.MaxInt32*time.Millisecond &&
			(lowest <= highest || highest == 0),
		func(c *config) { c.minTime, c.maxTime = lowest, highest },
		"session timeouts from %v to %v: want 0 <= lowest <= highest < 597h", lowest, highest)
}

// WithReaper sets how often empty containers and outlived TTL nodes are
// removed, one minute unless set. With zero only [Server.Reap] removes them.
func WithReaper(interval time.Duration) Option {
	return option(interval >= 0, func(c *config) { c.reaperInterval = interval }, "negative reaper interval %v", interval)
}

// WithPingLateness makes the leader ping its followers up to so much later than
// half a tick after the ping before, by chance. Unless given, it is on time.
func WithPingLateness(most time.Duration) Option {
	return option(most >= 0, func(c *config) { c.pingLateness = most }, "negative ping lateness %v", most)
}

// WithMaxPacket sets ZooKeeper's jute.maxbuffer, 0xfffff unless set: on a
// larger packet the server closes the connection.
func WithMaxPacket(bytes int) Option {
	return option(bytes >= 64, func(c *config) { c.maxPacket = bytes }, "packets of %d bytes: want 64 or more", bytes)
}

// WithLogger has the server log connections and sessions. Without it the server
// logs nothing.
func WithLogger(log *slog.Logger) Option {
	return option(log != nil, func(c *config) { c.log = log }, "nil logger")
}

// option sets something that is sound, or is an error that says what is wrong.
func option(sound bool, set func(*config), wrong string, args ...any) Option {
	return func(c *config) error {
		if !sound {
			return fmt.Errorf("zkembed: "+wrong, args...)
		}
		set(c)
		return nil
	}
}

func newConfig(opts []Option) (config, error) {
	c := config{
		addr: "127.0.0.1:0", maxPacket: 0xfffff, tick: 2 * time.Second, reaperInterval: time.Minute,
		log: slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		if err := o(&c); err != nil {
			return c, err
		}
	}
	if c.minTime == 0 {
		c.minTime = 2 * c.tick
	}
	if c.maxTime == 0 {
		c.maxTime = max(20*c.tick, c.minTime)
	}
	if c.minTime > c.maxTime {
		return c, fmt.Errorf("zkembed: lowest session timeout %v is above the highest, %v", c.minTime, c.maxTime)
	}
	return c, nil
}
