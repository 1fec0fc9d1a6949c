package zkembed

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Server is one ZooKeeper server in this process. Its methods may be called
// from any goroutine.
type Server struct {
	cfg     config
	ln      net.Listener
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
	stopped   bool
	closed    bool
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
		s.wg.Go(s.accept)
	}
	s.wg.Go(s.expireLoop)
	if cfg.reaperInterval > 0 {
		s.wg.Go(s.reapLoop)
	}
	return s, nil
}

// Addr is host:port of the TCP listener. Without one it is "127.0.0.1:2181", a
// name to dial for clients that use [Server.Dial].
func (s *Server) Addr() string {
	if s.ln == nil {
		return "127.0.0.1:2181"
	}
	return s.ln.Addr().String()
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
	if s.ln != nil {
		err = s.ln.Close()
	}
	s.wg.Wait()
	return err
}

func (s *Server) accept() {
	for {
		nc, err := s.ln.Accept()
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
		dead: make(chan struct{}), quit: make(chan struct{}), eof: make(chan struct{}), since: time.Now(),
		ids: []identity{{"ip", hostOf(remote)}}, view: s.leader,
	}
	s.mu.Lock()
	if s.closed || s.stopped || s.refused() {
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

// reset closes a connection so that its client sees a refusal rather than an
// orderly end, where the transport can tell them apart.
func reset(nc net.Conn) {
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
