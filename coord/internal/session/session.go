package session

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/window"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Session is one ZooKeeper session: one client connection object. The client
// gives it up when the server expires the session or answers with another one.
type Session struct {
	cfg    *Config
	log    *slog.Logger
	conn   *zk.Conn
	window window.Window
	clock  window.Clock
	begun  time.Time
	ending context.Context // ends with the session; its cause says why
	end    context.CancelCauseFunc
	kick   chan struct{} // wakes the supervisor
	search *servers.Search
	tasks  *tasks // begun on behalf of callers
	chores pool   // see Enqueue

	Watches  Watches
	Listings Listings

	needs atomic.Int64  // for an open window; while there are any, the supervisor probes
	asked atomic.Uint32 // requests so far

	noContainers atomic.Bool
	attendance   attendance
	told         time.Time // when Holding was reported last; only the supervisor uses it

	mu        sync.Mutex
	id        int64 // 0 until the first handshake
	timeout   time.Duration
	passwd    []byte
	server    string // that the connection goes to
	busy      bool   // the last connection ended because a request was not answered
	wire      *wire.Conn
	up        chan struct{} // closed while requests can be sent
	isUp      bool
	opened    time.Time // when it was up last
	brief     bool      // the connection before that did not last
	served    time.Time // when a server answered a request, or opened the session
	downSince time.Time
	probed    time.Time // when the newest probe on this connection began
	seen      int64     // the newest change that an answer has named
	before    int64     // the newest that the sessions before this one knew of, or 0 once it was compared

	parting sync.WaitGroup  // what talks to the client library after the end
	parted  chan struct{}   // gets a value when it does
	closing <-chan zk.Event // closed when the library's loop has ended
}

// libraryBuffer is for what passes through the client library: handshakes,
// pings and goodbyes, each of less than 100 bytes. The library's default is two
// buffers of 1.5 MiB.
const libraryBuffer = 256

func start(cfg *Config, before int64) (*Session, error) {
	ending, end := context.WithCancelCause(context.Background())
	s := &Session{
		cfg: cfg, log: cfg.Log, ending: ending, end: end, before: before,
		clock: window.Clock{Suspended: cfg.Suspended}, begun: time.Now(),
		kick: make(chan struct{}, 1), up: make(chan struct{}),
		timeout: cfg.Timeout, downSince: time.Now(), parted: make(chan struct{}, 1), tasks: &tasks{ending: ending},
	}
	s.chores.tasks = s.tasks
	s.Watches = Watches{s: s}
	for kind := range s.Watches.set {
		s.Watches.set[kind] = map[string]*Watch{}
	}
	s.Listings = Listings{s: s, of: map[string]*lister{}}
	s.search = servers.New(ending, cfg.Config, s.Go)
	s.noContainers.Store(cfg.NoContainers)
	ready := make(chan struct{})
	conn, events, err := zk.Connect(cfg.Servers, cfg.Timeout,
		zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
			<-ready
			return s.dial(network, addr)
		}),
		zk.WithHostProvider(s.search),
		zk.WithMaxBufferSize(libraryBuffer), zk.WithMaxConnBufferSize(libraryBuffer),
		zk.WithLogger(quiet{cfg.Log}),
		zk.WithLogInfo(false))
	if err != nil {
		end(err)
		return nil, fmt.Errorf("%w: %w", wire.ErrInvalid, err)
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

// Timeout returns the negotiated session timeout.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Age returns how long ago the session was begun, by the monotonic clock.
func (s *Session) Age() time.Duration { return time.Since(s.begun) }

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.ending.Done() }

// Err returns why the session is over, or nil. It matches [wire.ErrExpired],
// [wire.ErrClosed] or [zk.ErrAuthFailed].
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

// Connected reports whether requests can be sent at the moment.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isUp
}

// Unanswered returns for how long the server that the session is connected to
// has not answered, or 0 if that is no longer than servers may take.
func (s *Session) Unanswered() time.Duration {
	s.mu.Lock()
	c := s.wire
	s.mu.Unlock()
	if c == nil {
		return 0
	}
	if silent := c.Unanswered(); silent >= s.Timeout()/50 {
		return silent
	}
	return 0
}

// KeepOpen has the session keep its trust window open until LetClose undoes the
// call. A write that is due is queued before KeepOpen returns: it travels in
// front of the caller's next request.
func (s *Session) KeepOpen() {
	if s.needs.Add(1) > 1 {
		return
	}
	s.keepWindow(time.Now())
	s.wake()
}

// LetClose undoes one KeepOpen.
func (s *Session) LetClose() { s.needs.Add(-1) }

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
		w.Drop()
	}
	s.wake()
}

// setDown marks the connection as gone, and reports whether it was up; s.mu is
// held.
func (s *Session) setDown() bool {
	if !s.isUp {
		return false
	}
	s.isUp, s.up, s.downSince, s.probed = false, make(chan struct{}), time.Now(), time.Time{}
	return true
}

// dial is the client library's dialer.
func (s *Session) dial(network, addr string) (net.Conn, error) {
	if s.ending.Err() != nil {
		near, far := net.Pipe()
		s.parting.Go(func() { wire.Part(far, s.parted) })
		return near, nil
	}
	s.mu.Lock()
	timeout, brief := s.timeout, s.brief
	saving := s.id != 0 && time.Since(s.served) < timeout
	s.mu.Unlock()
	raw, err := s.search.Connect(network, addr, timeout, brief, saving)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Err() != nil {
		_ = raw.Close()
		return nil, s.Err()
	}
	s.server, s.wire = raw.Server, wire.New(raw.Conn, tap{s}, wire.Options{
		Clock: s.clock, Patient: s.busy, Seen: s.seen, Asked: &s.asked, Sizes: s.cfg.sizes, Spare: s.spare,
		// In the first round a hung server must not keep the others waiting;
		// later the network itself may be slow.
		Limit: time.Duration(min(1+raw.Round, handshakeShare/2)) * timeout / handshakeShare,
	})
	return s.wire, s.tasks.begin(s.wire.Send)
}

// newest is the newest change that this session or one before it knew of.
func (s *Session) newest() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.seen, s.before)
}
