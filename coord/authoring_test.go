package coord_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipetest"
)

func TestTheLatchKeepsTheRules(t *testing.T) {
	countDown := func(ctx context.Context, l *Latch) error { return l.CountDown(ctx, "a") }
	wait := func(ctx context.Context, l *Latch) error { return l.Wait(ctx) }
	recipetest.Run(t, recipetest.Recipe[*Latch]{
		New: func(c *coord.Client, path string) (*Latch, error) { return NewLatch(c, path, 1) },
		Calls: []recipetest.Call[*Latch]{
			{Name: "CountDown", Do: countDown, Done: wait, Requests: 6, RoundTrips: 6},
			{Name: "Wait", Do: wait, Ready: countDown, Unblock: countDown, Op: "wait", Requests: 1, RoundTrips: 1},
		},
	})
}

// held is what an author's recipe has made, and a hold of it.
type held[R any] struct {
	it R
	h  *coord.Hold
}

func (o *held[R]) keep(h *coord.Hold, err error) error {
	o.h = h
	return err
}

func (o *held[R]) release(ctx context.Context) error { return o.h.Release(ctx) }

// acquires is the table of a recipe whose call grants a hold.
func acquires[R any](
	construct func(*coord.Client, string) (R, error), acquire func(context.Context, R) (*coord.Hold, error),
) recipetest.Recipe[*held[R]] {
	acquired := func(ctx context.Context, o *held[R]) error { return o.keep(acquire(ctx, o.it)) }
	release := func(ctx context.Context, o *held[R]) error { return o.release(ctx) }
	return recipetest.Recipe[*held[R]]{
		New: func(c *coord.Client, path string) (*held[R], error) {
			it, err := construct(c, path)
			return &held[R]{it: it}, err
		},
		Calls: []recipetest.Call[*held[R]]{
			{Name: "Acquire", Holds: true, Do: acquired, Block: acquired, Ready: func(ctx context.Context, o *held[R]) error {
				if err := acquired(ctx, o); err != nil {
					return err
				}
				return release(ctx, o)
			}},
			{Name: "Release", Do: release, Ready: acquired, Ends: true, Holds: true, Requests: 1, RoundTrips: 1},
		},
	}
}

func TestTheRosterKeepsTheRules(t *testing.T) {
	join := func(ctx context.Context, r *Roster) (*coord.Hold, error) { return r.Join(ctx, "ann") }
	r := acquires(NewRoster, join)
	r.Calls[0].Block, r.Calls[0].Requests, r.Calls[0].RoundTrips = nil, 1, 1
	r.Calls = append(r.Calls, recipetest.Call[*held[*Roster]]{
		Name: "Observe a change", Waits: true, Do: func(ctx context.Context, o *held[*Roster]) error {
			for names, err := range o.it.Observe(ctx) {
				if err != nil || len(names) > 0 {
					return err
				}
			}
			return fmt.Errorf("the observation has ended: %w", ctx.Err())
		}, Unblock: func(ctx context.Context, o *held[*Roster]) error { return o.keep(join(ctx, o.it)) },
	})
	recipetest.Run(t, r)
}

func TestTheStickyMutexKeepsTheRules(t *testing.T) {
	r := acquires(func(c *coord.Client, path string) (*Sticky, error) { return NewSticky(c, path, "ann", time.Second) },
		func(ctx context.Context, s *Sticky) (*coord.Hold, error) { return s.Acquire(ctx) })
	r.Calls[0].Requests, r.Calls[0].RoundTrips = 6, 5
	recipetest.Run(t, r)
}

func TestThePausableMutexKeepsTheRules(t *testing.T) {
	r := acquires(func(c *coord.Client, path string) (*Pausable, error) { return NewPausable(c, path, path+"-pause") },
		func(ctx context.Context, p *Pausable) (*coord.Hold, error) { return p.Acquire(ctx) })
	r.Calls[0].Requests, r.Calls[0].RoundTrips = 4, 3
	recipetest.Run(t, r)
}
