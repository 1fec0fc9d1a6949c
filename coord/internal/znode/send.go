package znode

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

var (
	// ErrUnconfirmed: whether the request took effect is not known (yet).
	ErrUnconfirmed = errors.New("outcome not confirmed")
	// ErrReleased: our node was given up by its owner.
	ErrReleased = errors.New("hold released")
)

// ErrAgain is a judge's answer to have the request sent again.
var ErrAgain = errors.New("send it again")

// Send sends a request until its outcome is known. once sends it one time.
// judge gets each failure, and whether the reply to this attempt or an earlier
// one was lost: the request may then have been carried out, or may yet be. It
// returns nil if the request took effect, ErrAgain, or the error that Send
// returns. A throttled request was not carried out: it is sent again after a
// moment, without asking judge.
//
// No attempt is begun when ctx has ended or the session is over. The error then
// says so, and matches [ErrUnconfirmed] if a reply was lost.
func Send(ctx context.Context, s *session.Session, once func() error, judge func(err error, lost bool) error) error {
	for lost := false; ; {
		err := once()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, wire.ErrThrottled):
			Pause(ctx, s)
		default:
			lost = lost || IsLost(err)
			if verdict := judge(err, lost); verdict != ErrAgain {
				return verdict
			}
		}
		switch over := s.Err(); {
		case over != nil:
			return unconfirmed(lost, err, over)
		case ctx.Err() != nil:
			return unconfirmed(lost, err, calls.Ended(ctx))
		}
	}
}

// Txn carries out all the operations or none, one time. The error matches
// [ErrUnconfirmed] when it is not known whether they were. When the ensemble
// refused them, the results say which operation failed.
func Txn(ctx context.Context, s *session.Session, ops []wire.Op) ([]wire.Result, error) {
	results, err := s.Txn(ctx, ops)
	switch {
	case err == nil, errors.As(err, new(wire.HeldBack)): // nothing was sent
	case ctx.Err() != nil, errors.Is(err, wire.ErrConnection), errors.Is(err, wire.ErrExpired):
		return nil, Unconfirmed(err)
	}
	return results, err
}

// Certain runs try, for as long as its outcome takes, in a goroutine that the
// session's end waits for, and returns the error of try, or of ctx as soon as
// ctx ends. Then settle runs in the same goroutine: if the caller has left,
// settle undoes what try has done. If the session is over already, settle gets
// the error that says so.
func Certain(ctx context.Context, s *session.Session, try func() error, settle func(err error, left bool)) error {
	done := make(chan error)
	over := s.Go(func() {
		err := try()
		select {
		case done <- err:
			settle(err, false)
		case <-ctx.Done():
			settle(err, true)
		}
	})
	if over != nil {
		settle(over, false)
		return over
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return calls.Ended(ctx)
	}
}

// IsLost reports whether the reply to a request was lost, or not waited for.
func IsLost(err error) bool {
	return errors.Is(err, wire.ErrConnection) || errors.Is(err, ErrUnconfirmed)
}

// Unconfirmed adds [ErrUnconfirmed] to an error that leaves the outcome open.
func Unconfirmed(err error) error {
	if errors.Is(err, ErrUnconfirmed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

// unconfirmed describes the last attempt and what forbids another.
func unconfirmed(lost bool, err, end error) error {
	switch {
	case !lost:
		return end
	case !errors.Is(err, ErrUnconfirmed):
		return Unconfirmed(end)
	case errors.Is(err, end), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", err, end)
}

// Read repeats a read until it is answered, ctx has ended, or the session is
// over.
func Read[T any](ctx context.Context, s *session.Session, read func() (T, error)) (T, error) {
	var value T
	err := Send(ctx, s, func() (err error) {
		value, err = read()
		return err
	}, func(err error, _ bool) error {
		switch {
		case !errors.Is(err, wire.ErrConnection), s.Err() != nil:
			return err
		case ctx.Err() != nil:
			return calls.Ended(ctx, err)
		}
		return ErrAgain
	})
	return value, err
}

// Pause waits a moment before the repetition of a request that would fail again
// now.
func Pause(ctx context.Context, s *session.Session) { _ = s.Pause(ctx, s.Timeout()/50) }
