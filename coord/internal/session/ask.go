package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// ask sends a request, or says why it cannot be sent now. It does not block:
// see [wire.Conn.Ask]. Without a connection the error is [wire.ErrConnection].
func (s *Session) ask(r wire.Request, fields func(b []byte) []byte) error {
	if c := s.open(); c != nil {
		return c.Ask(r, fields)
	}
	return wire.ErrConnection
}

// open returns the connection that requests can be sent on, or nil.
func (s *Session) open() *wire.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isUp {
		return nil
	}
	return s.wire
}

// post is ask that waits until it is known whether servers accept a packet of
// its size, and until the link can carry it: see [wire.Conn.Await].
func (s *Session) post(ctx context.Context, r wire.Request, fields func(b []byte) []byte) error {
	for {
		c := s.open()
		if c == nil {
			return wire.ErrConnection
		}
		switch err := c.Await(ctx, r, fields).(type) {
		case wire.Doubt:
			if err := s.try(ctx, err.Size); err != nil {
				return err
			}
		case wire.HeldBack:
			return calls.Ended(ctx, err)
		default:
			return err
		}
	}
}

// spare returns for how long a single request may take the connection up. While
// the trust window is needed, it must outlast the request and the probes behind
// it.
func (s *Session) spare() time.Duration {
	if s.needs.Load() == 0 {
		return s.Timeout()
	}
	return time.Until(s.Deadline()) - s.Timeout()/8
}

// try makes trials of a packet's size until the size is no longer in doubt.
func (s *Session) try(ctx context.Context, size int) error {
	turn := s.cfg.sizes.Turn
	if err := await(ctx, s, turn); err != nil {
		return err
	}
	defer func() { turn <- struct{}{} }()
	for {
		doubt, doubtful := s.cfg.sizes.Judge(size).(wire.Doubt)
		if !doubtful {
			return nil
		}
		if err := s.Pause(ctx, doubt.Pause); err != nil {
			return err
		}
		_, _ = roundTrip[any](ctx, s, wire.Request{Op: wire.OpExists, Trial: true}, wire.Nowhere(size), nil)
	}
}

// await waits for coming, or for the end of ctx or of the session, which it
// reports.
func await[T any](ctx context.Context, s *Session, coming <-chan T) error {
	select {
	case <-coming:
		return nil
	case <-ctx.Done():
		return calls.Ended(ctx)
	case <-s.ending.Done():
		return s.Err()
	}
}

// Pause waits for d, or for the end of ctx or of the session, which it reports.
func (s *Session) Pause(ctx context.Context, d time.Duration) error {
	return await(ctx, s, time.After(d))
}

// Repeats paces a loop that repeats a request because the obstacle should have
// gone: the first time immediately, then after a pause.
type Repeats int

// Pause waits before a repetition, unless it is the first.
func (n *Repeats) Pause(ctx context.Context, s *Session) {
	*n++
	if *n > 1 {
		_ = s.Pause(ctx, s.Timeout()/50)
	}
}

// roundTrip asks and waits for what read makes of the answer, or for the end of
// ctx.
func roundTrip[T any](
	ctx context.Context, s *Session, r wire.Request, fields func(b []byte) []byte, read func(*wire.Decoder) T,
) (T, error) {
	return answer(ctx, s, &wire.Call[T]{Fields: read}, r, fields)
}

// answer is roundTrip with a call that the caller made.
func answer[T any](
	ctx context.Context, s *Session, c *wire.Call[T], r wire.Request, fields func(b []byte) []byte,
) (none T, err error) {
	if err := s.awaitUp(ctx); err != nil {
		return none, err
	}
	c.Done, r.Caller = make(chan struct{}), c
	if err := s.post(ctx, r, fields); err != nil {
		return none, s.translate(err)
	}
	select {
	case <-c.Done:
		if c.Err != nil {
			return none, s.translate(c.Err)
		}
		return c.Value, nil
	case <-ctx.Done():
		return none, calls.Ended(ctx)
	}
}

// translate distinguishes the end of the session from a passing loss of the
// connection.
func (s *Session) translate(err error) error {
	if errors.Is(err, wire.ErrConnection) && s.ending.Err() != nil {
		return fmt.Errorf("%w: %w", s.Err(), err)
	}
	return err
}

// poolSize bounds how many requests of a pool or pipeline are under way. Many
// waiters must not fill the connection: all other requests would stand behind
// theirs.
const poolSize = 128
