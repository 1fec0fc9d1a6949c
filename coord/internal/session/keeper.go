package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

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
		if errors.Is(s.Err(), zk.ErrAuthFailed) || time.Since(begun) < k.cfg.Timeout/100 {
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
		case errors.Is(err, zk.ErrAuthFailed):
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

// LastErrors returns why the last attempt to connect to each server failed, or
// nil.
func (k *Keeper) LastErrors() error { return k.Current().search.LastErrors() }

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
