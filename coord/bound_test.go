package coord_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// bounds are the options of a recipe: MaxHold with a grace, and StopGrace; 0
// leaves one out.
type bounds struct{ most, grace, stop time.Duration }

// options are those of a recipe that a bound asks for.
func options[O any](b bounds, most func(d, grace time.Duration) O, stop func(time.Duration) O) (opts []O) {
	if b.most > 0 {
		opts = append(opts, most(b.most, b.grace))
	}
	if b.stop > 0 {
		opts = append(opts, stop(b.stop))
	}
	return opts
}

// under is a function that a recipe runs while something is held.
type under = func(ctx context.Context, held coord.Held)

// minutely is due at each full minute.
type minutely struct{}

func (minutely) Next(t time.Time) time.Time { return t.Truncate(time.Minute).Add(time.Minute) }

func must[R any](r R, err error) R {
	if err != nil {
		panic(err)
	}
	return r
}

// bounded are the recipes that call a function under a hold, one of which one
// client has at a time.
var bounded = map[string]func(ctx context.Context, c *coord.Client, b bounds, f under) error{
	"lock": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		m := must(lock.New(c, "/bounded", options(b, lock.MaxHold, lock.StopGrace)...))
		return m.Do(ctx, func(ctx context.Context, h *coord.Hold) error { f(ctx, h); return ctx.Err() })
	},
	"lock, by hold.Do with TryAcquire": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		m := must(lock.New(c, "/bounded", options(b, lock.MaxHold, lock.StopGrace)...))
		for {
			err := hold.Do(ctx, m.TryAcquire, func(ctx context.Context, h *coord.Hold) error { f(ctx, h); return ctx.Err() })
			if !errors.Is(err, coord.ErrBusy) {
				return err
			}
			time.Sleep(time.Second / 10)
		}
	},
	"several locks": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		opts := options(b, lock.MaxHold, lock.StopGrace)
		all := must(lock.NewMulti(must(lock.New(c, "/bounded", opts...)), must(lock.New(c, "/beside", opts...))))
		return all.Do(ctx, func(ctx context.Context, g *hold.Set) error { f(ctx, g.Holds()[1]); return ctx.Err() })
	},
	"the shared lock, written": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		l := must(rwlock.New(c, "/bounded", options(b, rwlock.MaxHold, rwlock.StopGrace)...))
		return l.DoWrite(ctx, func(ctx context.Context, h *coord.Hold) error { f(ctx, h); return ctx.Err() })
	},
	"semaphore": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		s := must(semaphore.New(c, "/bounded", 1, options(b, semaphore.MaxHold, semaphore.StopGrace)...))
		return s.Do(ctx, func(ctx context.Context, h *coord.Hold) error { f(ctx, h); return ctx.Err() })
	},
	"election": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		e := must(election.New(c, "/bounded", options(b, election.MaxHold, election.StopGrace)...))
		return e.Run(ctx, nil, func(ctx context.Context, t *election.Term) error { f(ctx, t); return ctx.Err() })
	},
	"once": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		o := must(once.New(c, "/bounded", options(b, once.MaxHold, once.StopGrace)...))
		_, err := o.Do(ctx, "job",
			func(ctx context.Context, r *once.Run) ([]byte, error) { f(ctx, r); return nil, ctx.Err() })
		return err
	},
	"cron": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		opts := append(options(b, cron.MaxHold, cron.StopGrace), cron.Attempts(9, 0))
		s := must(cron.New(c, "/bounded", minutely{}, opts...))
		return s.Run(ctx, func(ctx context.Context, s *cron.Slot) ([]byte, error) { f(ctx, s); return nil, ctx.Err() })
	},
	"slots": func(ctx context.Context, c *coord.Client, b bounds, f under) error {
		s := must(slots.New(c, "/bounded", 1, options(b, slots.MaxHold, slots.StopGrace)...))
		return s.Do(ctx, func(ctx context.Context, s *slots.Slot) error { f(ctx, s); return ctx.Err() })
	},
}

// hanging is a call of a recipe whose function returns when it is told to, and
// heeds nothing else. A schedule may call it again, which returns at once.
type hanging struct {
	begun  chan coord.Held
	ctx    context.Context // the function's
	let    chan struct{}
	ended  <-chan error
	cancel context.CancelFunc // the caller's context
}

func hang(b coordtest.Bubble, run func(context.Context, *coord.Client, bounds, under) error, at bounds) *hanging {
	ctx, cancel := context.WithCancel(b.Context())
	h, c := &hanging{begun: make(chan coord.Held), let: make(chan struct{}), cancel: cancel}, b.Open()
	var called atomic.Bool
	h.ended = coordtest.Go(func() error {
		return run(ctx, c, at, func(inside context.Context, held coord.Held) {
			if called.Swap(true) {
				return
			}
			h.ctx = inside
			h.begun <- held
			<-h.let
		})
	})
	return h
}

// end has the function return, and the call with it.
func (h *hanging) end() error {
	h.cancel()
	close(h.let)
	return <-h.ended
}

// TestF74AFunctionThatHangsLosesItsHoldAfterTheGrace: a function that goes on
// after the end of its context keeps what it holds for as long as it hangs,
// unless the recipe has a grace.
func TestF74AFunctionThatHangsLosesItsHoldAfterTheGrace(t *testing.T) {
	for name, run := range bounded {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				one := hang(b, run, bounds{stop: time.Minute})
				held := <-one.begun
				other := hang(b, run, bounds{})
				time.Sleep(time.Hour)
				require.NoError(b, held.Err(), "the function's context has not ended")
				one.cancel()
				begun := time.Now()
				<-held.Done()
				require.Equal(b, time.Minute, time.Since(begun))
				require.ErrorIs(b, held.Err(), coord.ErrLost)
				require.ErrorIs(b, held.Err(), hold.ErrHeldTooLong)
				require.ErrorIs(b, held.Err(), context.Canceled, "why the function was to end")
				next := <-other.begun
				require.Greater(b, next.Session(), int64(0))
				require.NoError(b, next.Err())
				require.Error(b, one.end())

				other.cancel()
				time.Sleep(time.Hour)
				require.NoError(b, next.Err(), "without a grace")
				require.Error(b, other.end())
			})
		})
	}
}

func TestAFunctionThatReturnsWithinTheGraceKeepsItsHoldUntilThen(t *testing.T) {
	for name, run := range bounded {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				one := hang(b, run, bounds{stop: time.Minute})
				held := <-one.begun
				one.cancel()
				time.Sleep(59 * time.Second)
				require.NoError(b, held.Err())
				err := one.end()
				require.ErrorIs(b, err, context.Canceled)
				require.NotErrorIs(b, err, coord.ErrLost)
				require.ErrorIs(b, held.Err(), coord.ErrReleased)
			})
		})
	}
}

// TestF74WhatLastsTooLongIsAskedToEndAndThenGivenUp: the function's context
// ends first, so that it has the grace.
func TestF74WhatLastsTooLongIsAskedToEndAndThenGivenUp(t *testing.T) {
	for name, run := range bounded {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				one := hang(b, run, bounds{most: time.Hour, grace: time.Minute})
				held, begun := <-one.begun, time.Now()
				other := hang(b, run, bounds{})
				<-one.ctx.Done()
				require.Equal(b, time.Hour, time.Since(begun))
				require.ErrorIs(b, context.Cause(one.ctx), hold.ErrHeldTooLong)
				require.NoError(b, held.Err())
				zktest.Receive(b, time.Second, held.Revoked(), "the request")
				<-held.Done()
				require.InDelta(b, time.Hour+time.Minute, time.Since(begun), float64(time.Second))
				require.ErrorIs(b, held.Err(), coord.ErrLost)
				require.ErrorIs(b, held.Err(), hold.ErrHeldTooLong)
				require.NoError(b, (<-other.begun).Err())
				require.Error(b, one.end())
				require.Error(b, other.end())
			})
		})
	}
}
