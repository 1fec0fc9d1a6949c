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
	told         time.Time // when Holding came last; the supervisor's

	mu        sync.Mutex
	id        int64 // 0 until the first handshake
	timeout   time.Duration
	passwd    []byte
	server    string // which the connection is to
	busy      bool   // the last connection ended because a request was not answered
	wire      *wire.Conn
	up        chan struct{} // closed while requests can be sent
	isUp      bool
	opened    time.Time // when it was up last
	brief     bool      // the connection before that did not last
	served    time.Time // when a server answered a request, or opened the session
	downSince time.Time
	probed    time.Time // when the newest probe on this connection began
	seen      int64     // the newest change that an answer has told of
	before    int64     // the newest that the sessions before this one knew of, or 0 once it was compared

	parting sync.WaitGroup  // what talks to the client library after the end
	parted  chan struct{}   // hears that it does
	closing <-chan zk.Event // closed when the library's loop has ended
}

// libraryBuffer is for what passes through the client library: handshakes,
// pings and goodbyes, each of less than 100 bytes. Its default is 1.5 MiB, two
// times.
const libraryBuffer = 256

func start(cfg *Config, before int64) (*Session, error) {
	ending, end := context.WithCancelCause(context.Background())
	s := &Session{
		cfg: cfg, log: cfg.Log, ending: ending, end: end, before: before,
		clock: window.Clock{Suspended: cfg.Suspended},
		kick:  make(chan struct{}, 1), up: make(chan struct{}),
		timeout: cfg.Timeout, downSince: time.Now(), parted: make(chan struct{}, 1), tasks: &tasks{ending: ending},
	}
	s.chores.tasks = s.tasks
	s.Watches = Watches{s: s, set: map[armed]*Watch{}, arming: pool{tasks: s.tasks}}
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

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.ending.Done() }

// Err returns why the session is over, or nil. It matches [wire.ErrExpired],
// [wire.ErrClosed] or [wire.ErrAuth].
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

// setDown marks the connection as gone; s.mu is held.
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
	raw, err := s.search.Find(network, addr, timeout, brief, saving)
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

// tap is what the session hears from its connections.
type tap struct{ *Session }

// Established judges a handshake. A server that answers with another session,
// or with none, has ended this one; and so has one that gives it less time.
func (s tap) Established(w wire.Welcome, sent time.Time) error {
	s.mu.Lock()
	first := s.id == 0
	if first && w.ID != 0 {
		s.id, s.timeout, s.served = w.ID, w.Timeout, time.Now()
		s.window.Create(sent, w.Timeout, window.Lag(w.Timeout, s.cfg.Tick))
	}
	known, granted := s.id, s.timeout
	s.mu.Unlock()
	switch {
	case first && w.ID == 0:
		return errors.New("the server refused a session")
	case w.ID == 0:
		s.search.Pace.Answered() // it will open another
		s.over(fmt.Errorf("%w: the server has expired it", wire.ErrExpired))
		return wire.ErrExpired
	case w.ID != known:
		s.over(fmt.Errorf("%w: the server replaced it by another", wire.ErrExpired))
		return wire.ErrExpired
	case w.Timeout < granted:
		// Each server has its own limits. Holds were granted for the longer
		// timeout.
		s.over(fmt.Errorf("%w: %w: the server grants it only %v, not %v any more", wire.ErrExpired, errGivenUp, w.Timeout, granted))
		return wire.ErrExpired
	}
	if !first {
		s.window.Attach(sent)
	}
	return nil
}

// Opened presents the credentials and lets requests through. While the window
// is needed, the first of them is a probe: a reconnect counts for the window
// only with it, and the requests of many waiters can keep a server busy for
// long.
func (s tap) Opened(c *wire.Conn, w wire.Welcome) {
	for _, a := range s.cfg.Auth {
		_ = c.Ask(wire.Request{Op: wire.OpAuth, Caller: &wire.Call[any]{Told: s.authenticated}}, wire.Credential(a.Scheme, a.Value))
	}
	s.mu.Lock()
	if s.needs.Load() > 0 {
		s.probe(c, time.Now())
	}
	if s.ending.Err() != nil {
		s.mu.Unlock()
		return
	}
	now, first := time.Now(), s.passwd == nil
	s.brief = now.Sub(s.opened) < servers.BackOff
	s.isUp, s.passwd, s.opened = true, w.Passwd, now
	close(s.up)
	s.mu.Unlock()
	switch {
	case s.cfg.attendant == nil:
	case first:
		s.beAttended()
	default:
		_ = s.Go(s.beAttended) // fails when the session is over
	}
	s.cfg.Notify(Up, s.Session)
	s.wake()
}

func (s tap) authenticated(err error) {
	if err != nil && !errors.Is(err, wire.ErrConnection) {
		s.log.Error("the server refused a credential", "err", err)
		s.over(wire.ErrAuth)
	}
}

func (s tap) Answered(zxid int64, err error, sent time.Time, proves bool) {
	if !sent.IsZero() && s.window.Answer(sent, s.clock.Now(), proves) {
		s.wake()
	}
	if err == wire.ErrExpired {
		// Usually the connection ends first. Otherwise a caller would repeat
		// the request at full speed.
		s.over(fmt.Errorf("%w: the server has expired it", wire.ErrExpired))
	}
	s.search.Answered()
	s.mu.Lock()
	before := s.before
	if zxid > 0 {
		s.before = 0
	}
	s.busy, s.seen, s.served = false, max(s.seen, zxid), time.Now()
	s.mu.Unlock()
	if 0 < zxid && zxid < before { // the session itself is a newer change
		s.log.Warn("the servers have lost changes: they were restored from a backup, or started empty; tokens are smaller than before",
			"newest seen", fmt.Sprintf("0x%x", before), "newest there", fmt.Sprintf("0x%x", zxid))
	}
}

// newest is the newest change that this session or one before it knew of.
func (s *Session) newest() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.seen, s.before)
}

// Failed fires the watches that were set on the connection, too: no wait relies
// on their being set again, each looks again. The waiters must not wake before
// the session knows that the connection is gone.
func (s tap) Failed(c *wire.Conn, open bool, err error) {
	s.mu.Lock()
	server := s.server
	s.busy = s.busy || open && errors.Is(err, os.ErrDeadlineExceeded)
	changed := s.wire == c && s.setDown()
	s.mu.Unlock()
	if errors.As(err, new(wire.Refusal)) {
		if s.search.Refused(server, err) == 1 {
			s.log.Warn("the server does not serve the session; looking for another", "server", server, "err", err)
		}
	} else if !open {
		s.search.Failed(server, err)
	}
	if changed {
		s.cfg.Notify(Down, s.Session)
	}
	s.Watches.lose()
}

func (s tap) Fired(event int32, path string) { s.Watches.tell(event, path) }

// quiet turns the client library's lines into debug records.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug(fmt.Sprintf("zk: "+format, args...))
}
