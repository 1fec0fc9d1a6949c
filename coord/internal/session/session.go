package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/window"
)

// Session is one ZooKeeper session: one client connection object. The client
// gives it up when the server expires the session or answers with another one.
type Session struct {
	cfg    *Config
	log    *slog.Logger
	conn   *zk.Conn
	window window.Window
	clock  window.Clock
	ending context.Context // ends with the session; its cause says why
	end    context.CancelCauseFunc
	kick   chan struct{} // wakes the supervisor
	hosts  *hosts

	claims atomic.Int64 // while there are any, the supervisor probes

	mu        sync.Mutex
	id        int64 // 0 until the first handshake
	timeout   time.Duration
	passwd    []byte
	attempts  int   // dials since a server answered
	trouble   error // why the last of them failed
	hunt      *hunt // for a connection; nil while there is one
	busy      bool  // the last connection ended because a request was not answered
	wire      *wire
	up        chan struct{} // closed while requests can be sent
	isUp      bool
	downSince time.Time
	probed    time.Time // when the newest probe on this connection began
	asked     uint32    // requests of its own so far, probes included
	seen      int64     // the newest change that an answer has told of
	probing   bool      // one is being written
	watches   map[armed]*Watch
	arming    pool // sets watches on nodes
	chores    pool // see Enqueue
	listers   map[string]*lister
	tasks     sync.WaitGroup  // goroutines begun on behalf of callers
	concluded bool            // no more of them
	closing   <-chan zk.Event // closed when the client library's loop has ended
}

func start(cfg *Config) (*Session, error) {
	ending, end := context.WithCancelCause(context.Background())
	s := &Session{
		cfg: cfg, log: cfg.Log, ending: ending, end: end,
		clock: window.Clock{Suspended: cfg.Suspended},
		kick:  make(chan struct{}, 1), up: make(chan struct{}), hosts: newHosts(ending, cfg.Servers),
		timeout: cfg.Timeout, downSince: time.Now(),
		watches: map[armed]*Watch{}, listers: map[string]*lister{},
	}
	ready := make(chan struct{})
	conn, events, err := zk.Connect(cfg.Servers, cfg.Timeout,
		zk.WithDialer(func(network, addr string, limit time.Duration) (net.Conn, error) {
			<-ready
			return s.dial(network, addr, limit)
		}),
		zk.WithHostProvider(s.hosts),
		zk.WithEventCallback(s.event),
		zk.WithLogger(quiet{cfg.Log}),
		zk.WithLogInfo(false))
	if err != nil {
		end(err)
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.conn, s.closing = conn, events
	close(ready)
	return s, nil
}

// ID returns the session's id, or 0 while it has none yet.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout returns the negotiated session time-out.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.ending.Done() }

// Err tells why the session is over, or nil. It matches [ErrExpired],
// [ErrClosed] or [ErrAuth].
func (s *Session) Err() error {
	if s.ending.Err() == nil {
		return nil
	}
	return context.Cause(s.ending)
}

// Deadline returns the end of the trust window as known now: until then no
// server can have given the session up.
func (s *Session) Deadline() time.Time {
	return s.clock.Wall(s.window.End())
}

// Trouble tells why the last attempt to connect failed, or nil.
func (s *Session) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// Connected reports whether requests can be sent at the moment.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isUp
}

// AddClaim announces a claim: from the first on, the session probes. Each call
// is undone by one RemoveClaim.
func (s *Session) AddClaim() {
	if s.claims.Add(1) == 1 {
		s.wake()
	}
}

// RemoveClaim undoes one AddClaim.
func (s *Session) RemoveClaim() { s.claims.Add(-1) }

func (s *Session) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// over ends the session for good. The first cause stays.
func (s *Session) over(cause error) {
	s.end(cause)
	s.mu.Lock()
	s.setDown()
	w := s.wire
	s.mu.Unlock()
	if w != nil {
		_ = w.Conn.Close()
	}
	s.wake()
}

// setDown marks the connection as gone; s.mu is held.
func (s *Session) setDown() bool {
	if !s.isUp {
		return false
	}
	s.isUp, s.up, s.downSince, s.probed = false, make(chan struct{}), time.Now(), time.Time{}
	return true
}

// adopt makes w the session's connection, and begins to write what is asked on
// it, unless the session is over.
func (s *Session) adopt(w *wire) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Err() != nil {
		return false
	}
	s.wire = w
	return s.begin(w.send) == nil
}

// established implements tap. A server that answers with another session, or
// with none, has ended this one, whatever else it says; and so has one that
// gives it less time.
//
// While there are claims, the first request on a connection is a probe: a
// reconnect counts for the window only with it, and the requests of many
// waiters can keep a server busy for long.
func (s *Session) established(id int64, timeout time.Duration, sent time.Time) (probe int32, err error) {
	s.mu.Lock()
	first := s.id == 0
	if first && id != 0 {
		s.id, s.timeout = id, timeout
		s.window.Create(sent, timeout, window.Lag(timeout, s.cfg.Tick))
	}
	known, granted := s.id, s.timeout
	s.mu.Unlock()
	switch {
	case first && id == 0:
		return 0, errors.New("the server refused a session")
	case id == 0:
		s.over(fmt.Errorf("%w: the server has expired it", ErrExpired))
		return 0, ErrExpired
	case id != known:
		s.over(fmt.Errorf("%w: the server replaced it by another", ErrExpired))
		return 0, ErrExpired
	case timeout < granted:
		// Each server has its own limits. Holds were granted for the longer
		// time-out.
		s.over(fmt.Errorf("%w: the server grants it only %v, not %v any more", ErrExpired, timeout, granted))
		return 0, ErrExpired
	}
	if !first {
		s.window.Attach(sent)
	}
	if s.claims.Load() == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextProbe(time.Now()), nil
}

// answered implements tap.
func (s *Session) answered(r request, zxid int64, code int32) {
	if !r.moment.IsZero() && s.window.Answer(r.moment, s.clock.Now(), isWrite(r.op) && committed(code)) {
		s.wake()
	}
	s.cfg.packets.answered(r)
	if code == codeExpired {
		// Usually the connection ends first. Otherwise a caller would repeat
		// the request at full speed.
		s.over(fmt.Errorf("%w: the server has expired it", ErrExpired))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts, s.trouble, s.busy, s.seen = 0, nil, false, max(s.seen, zxid)
}

// authenticated implements tap.
func (s *Session) authenticated(code int32) {
	if code != 0 {
		s.log.Error("the server refused a credential", "code", code)
		s.over(ErrAuth)
	}
}

// refused implements tap.
func (s *Session) refused(pending []request) { s.cfg.packets.refused(pending) }

// failed implements tap.
func (s *Session) failed(w *wire, open bool, err error) {
	s.mu.Lock()
	if !open {
		s.trouble = err
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		s.busy = true
	}
	changed := s.wire == w && s.setDown()
	s.mu.Unlock()
	if changed {
		s.cfg.Notify(Down, s)
	}
}

// event is the client library's callback. It runs in the library's own
// goroutines and must neither block nor call the library.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		s.dispatch(e)
		return
	}
	if e.State == zk.StateDisconnected && s.hosts.isIdle() {
		time.Sleep(headStart) // for what Close asks for; see conclude
	}
	if e.State != zk.StateHasSession {
		return
	}
	s.mu.Lock()
	if s.isUp || s.ending.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.isUp, s.passwd = true, s.wire.passwd
	close(s.up)
	s.mu.Unlock()
	s.cfg.Notify(Up, s)
	s.wake()
}

// quiet turns the client library's lines into debug records.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug(fmt.Sprintf("zk: "+format, args...))
}
