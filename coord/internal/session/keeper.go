package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Keeper keeps one session usable at a time: it opens one, supervises it, and
// opens the next when that is over.
type Keeper struct {
	cfg     Config
	mu      sync.Mutex
	current *Session
	former  []int64       // the sessions before, the newest last; at most formerKept
	changed chan struct{} // closed when current changes
	stop    context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// NewKeeper begins to connect in the background.
func NewKeeper(cfg Config) (*Keeper, error) {
	stop, cancel := context.WithCancel(context.Background())
	cfg.sizes, cfg.Pace = wire.NewSizes(cfg.MaxPacket), new(servers.Pace)
	if cfg.Attendant != "" {
		cfg.attendant = attend.NewClient(cfg.Attendant, cfg.Share, cfg.Attended)
	}
	k := &Keeper{cfg: cfg, changed: make(chan struct{}), stop: stop, cancel: cancel}
	s, err := start(&k.cfg, 0)
	if err != nil {
		cancel()
		return nil, err
	}
	k.current = s
	k.running.Go(k.run)
	if k.cfg.attendant != nil {
		k.running.Go(func() { k.cfg.attendant.Run(stop) })
	}
	return k, nil
}

// run supervises one session after the other. Sessions that do not last, such
// as those whose credentials the server refuses, come at a slower pace.
func (k *Keeper) run() {
	s := k.current
	for out := new(outage); ; {
		begun := time.Now()
		s.supervise(k.stop, out)
		// Before the session is closed: its holds must have ended when the
		// server gives it up.
		k.cfg.Notify(Over, s)
		if k.stop.Err() != nil {
			s.closeInOrder()
		}
		k.running.Go(s.conclude)
		former := s
		k.running.Go(func() { k.closeFormer(former) })
		if errors.Is(s.Err(), wire.ErrAuth) || time.Since(begun) < k.cfg.Timeout/100 {
			select {
			case <-time.After(min(k.cfg.Timeout/10, time.Second)):
			case <-k.stop.Done():
			}
		}
		if k.stop.Err() != nil {
			return
		}
		next, err := start(&k.cfg, s.newest())
		if err != nil {
			// The arguments were accepted for the session before.
			k.cfg.Log.Error("cannot open a session", "err", err)
			return
		}
		s = next
		k.mu.Lock()
		k.current = s
		k.former = append(k.former[max(0, len(k.former)-formerKept+1):], former.ID())
		close(k.changed)
		k.changed = make(chan struct{})
		k.mu.Unlock()
	}
}

// Session waits for a session that can be used. It does not wait when the last
// one ended because the server refused the credentials.
func (k *Keeper) Session(ctx context.Context) (*Session, error) {
	for {
		k.mu.Lock()
		s, changed := k.current, k.changed
		k.mu.Unlock()
		if k.stop.Err() != nil {
			return nil, wire.ErrClosed
		}
		err := s.awaitUp(ctx)
		if err == nil {
			return s, nil
		}
		switch {
		case errors.Is(err, wire.ErrAuth):
			return nil, err
		case ctx.Err() != nil:
			return nil, calls.Ended(ctx, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, calls.Ended(ctx)
		case <-k.stop.Done():
			return nil, wire.ErrClosed
		}
	}
}

// formerKept is how many sessions before the current one are remembered: the
// servers have ended the others long since.
const formerKept = 16

// Former returns the sessions before the current one that servers may still
// have.
func (k *Keeper) Former() []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.former)
}

// Current returns the newest session, usable or not.
func (k *Keeper) Current() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// Trouble returns why the last attempt to connect to each server failed, or
// nil.
func (k *Keeper) Trouble() error { return k.Current().search.Trouble() }

// Close ends the session and waits until every goroutine is gone or ctx ends.
func (k *Keeper) Close(ctx context.Context) error {
	k.cancel()
	done := make(chan struct{})
	go func() {
		k.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return calls.Ended(ctx)
	}
}

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

// attend does the work due at now and returns when to look again.
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

// keepWindow sends a probe if a write is due that keeps the window open, and
// returns in how long the next will be.
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

// Vouch waits until the trust window is open, probing as often as needed. At
// first it wants a quarter of T to be left: a session that has written nothing
// for long may have less. If two writes do not bring that, as when replies take
// a good part of T, any open window will do.
func (s *Session) Vouch(ctx context.Context) error {
	enough := s.Timeout() / 4
	open := func() bool { return time.Until(s.Deadline()) > enough }
	for probes := 0; ; {
		if open() {
			return s.Err()
		}
		switch err := s.Flush(ctx); {
		case err == nil:
			// Two writes, one after the other, open it (see package window);
			// the first has perhaps travelled with the request for the turn.
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
// connection: between two its loop may end without an answer to the request of
// Close.
func (s *Session) conclude() {
	<-s.parted
	s.conn.Close()
	s.tasks.conclude()
	for range s.closing {
	}
	s.parting.Wait()
}
