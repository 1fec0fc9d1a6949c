package session

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/window"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// tap receives what a session's connections observe.
type tap struct{ *Session }

// Established judges a handshake. A server that answers with another session,
// or with none, has ended this one. If the server grants it less time, the
// client gives it up.
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
		s.over(
			fmt.Errorf("%w: %w: the server grants it only %v now, not %v", wire.ErrExpired, errGivenUp, w.Timeout, granted))
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
		_ = c.Ask(wire.Request{Op: wire.OpAuth, Caller: &wire.Call[any]{Told: s.authenticated}},
			wire.Credential(a.Scheme, a.Value))
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
		s.over(fmt.Errorf("%w: the server refused the credentials", zk.ErrAuthFailed))
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
		s.log.Warn(
			"the servers have lost changes: they were restored from a backup, or started empty; tokens are smaller than before",
			"newest seen", fmt.Sprintf("0x%x", before), "newest there", fmt.Sprintf("0x%x", zxid))
	}
}

// Failed also fires the watches that were set on the connection: waiters do not
// rely on watches that are set again, but look again. They must not wake before
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

func (s tap) Fired(event zk.EventType, path string) { s.Watches.tell(event, path) }

// quiet turns the client library's lines into debug records.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug(fmt.Sprintf("zk: "+format, args...))
}
