package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// supervise probes, watches the window and the outages, and returns when the
// session is over.
func (s *Session) supervise(stop context.Context, out *outage) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.kick:
		case <-stop.Done():
			s.end(wire.ErrClosed)
			return
		}
		if s.ending.Err() != nil {
			return
		}
		now := time.Now()
		timer.Reset(min(s.attend(now), out.attend(s, now)))
	}
}

// attend does the work due at now and returns in how long to look again.
func (s *Session) attend(now time.Time) time.Duration {
	s.mu.Lock()
	id, isUp, downSince, timeout := s.id, s.isUp, s.downSince, s.timeout
	s.mu.Unlock()
	if id == 0 {
		return timeout
	}
	next, needed := min(timeout, s.mayHaveChanged(now)), s.needs.Load() > 0
	if needed { // also while there is no connection: the session's clock can jump
		next = s.window.Interval(s.clock.Now())
	}
	if !isUp {
		left := downSince.Add(timeout).Sub(now)
		if left <= 0 {
			s.over(fmt.Errorf("%w: %w: no server for %v", wire.ErrExpired, errGivenUp, timeout))
			return 0
		}
		next = min(next, left)
	}
	if deadline := s.Deadline(); now.Before(deadline) {
		next = min(next, deadline.Sub(now))
	} else {
		s.cfg.Notify(WindowClosed, s) // an answer that opens it wakes the supervisor
	}
	if isUp && needed {
		next = min(next, s.keepWindow(now))
		if now.Sub(s.told) >= timeout/10 {
			s.told = now
			s.cfg.Notify(Holding, s)
		}
	}
	return max(next, time.Millisecond)
}

// keepWindow sends a probe if a write is due to keep the window open, and
// returns in how long the next one is due.
func (s *Session) keepWindow(now time.Time) time.Duration {
	wrote := s.clock.Wall(s.window.Wrote())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probed.After(wrote) {
		wrote = s.probed
	}
	due := wrote.Sub(now) + s.window.Interval(s.clock.Now().Add(wrote.Sub(now)))
	if due <= 0 && s.isUp {
		s.probe(s.wire, now)
		due = s.window.Interval(s.clock.Now())
	}
	return due
}

// probe sends a write that changes nothing; s.mu is held. Its reply moves the
// window. A probe does not wait for the reply to the one before: where replies
// take a good part of T, the window would fall behind. A connection without
// replies is given up, which bounds the number of probes under way.
func (s *Session) probe(c *wire.Conn, now time.Time) {
	s.probed = now
	_ = c.Ask(wire.Request{Op: wire.OpMulti, Urgent: true}, wire.Transaction(changesNothing))
}

// AwaitWindow waits until the trust window is open, probing as often as needed.
// At first it wants a quarter of T to be left: a session that has written
// nothing for long may have less. If two writes do not bring that, as when
// replies take a good part of T, any open window will do.
func (s *Session) AwaitWindow(ctx context.Context) error {
	enough := s.Timeout() / 4
	open := func() bool { return time.Until(s.Deadline()) > enough }
	for probes := 0; ; {
		if open() {
			return s.Err()
		}
		switch err := s.Flush(ctx); {
		case err == nil:
			// Two writes, one after the other, open it (see package window);
			// the first may have been sent before the call.
			probes++
			enough = s.Timeout() / 5 * time.Duration(2-min(probes, 2))
			if probes%2 == 1 || open() {
				continue
			}
		case !errors.Is(err, wire.ErrConnection) && err != wire.ErrThrottled:
			return err
		}
		if err := s.Pause(ctx, s.Timeout()/50); err != nil {
			return err
		}
	}
}

// closeInOrder closes the session at the server, if one is connected, which
// deletes its ephemeral nodes immediately, and ends the session. The server has
// as much time to answer as it has for a handshake.
func (s *Session) closeInOrder() {
	s.mu.Lock()
	connected, w := s.setDown(), s.wire
	s.mu.Unlock()
	if connected {
		w.CloseSession(min(closeLimit, s.Timeout()/handshakeShare))
	}
	s.over(wire.ErrClosed)
}

// conclude ends the client library's loop, and waits for it and for the
// session's goroutines. The library must not be closed before it has a
// connection: between two connections its loop may end without an answer to the
// request of Close.
func (s *Session) conclude() {
	<-s.parted
	s.conn.Close()
	s.tasks.conclude()
	for range s.closing {
	}
	s.parting.Wait()
}
