package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Slot is one attempt to run a slot, by the holder of its lock. The hold's
// token is larger than those of the attempts before. End and Abandon end it.
type Slot struct {
	coord.Held
	At      time.Time   // the slot's instant, in UTC
	Key     string      // of its record: [Key]
	Attempt int         // from 1; each one that was begun counts
	Last    once.Result // of the attempt before: failed or unfinished; zero at the first

	cron *Cron
	run  *once.Run
}

// Func runs a slot. Its context ends when the hold does, and with Run's. The
// data that it returns are put on record.
type Func = func(ctx context.Context, s *Slot) ([]byte, error)

// Run calls f for each slot that falls to this client, until ctx ends or the
// schedule is over ([ErrOver]). Call it in every replica: one of them runs each
// slot. It returns when the functions under way have returned. An error of f is
// on record ([OnEnd]), and does not end Run; any other error does only if
// another try cannot mend it, such as a missing permission.
//
// A function that fails after ctx has ended has not run its slot: another
// client does, unless the [Attempts] are used up.
func (c *Cron) Run(ctx context.Context, f Func) error {
	if f == nil {
		return c.failed("run", fmt.Errorf("%w: the function is nil", coord.ErrInvalid))
	}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		s, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		running.Go(func() { s.perform(ctx, f) })
	}
}

// perform calls the function and ends the slot.
func (s *Slot) perform(ctx context.Context, f Func) {
	if ctx.Err() != nil {
		ending, cancel := recipe.Grace(ctx)
		defer cancel()
		_ = s.run.Withdraw(ending) // otherwise the attempt counts
		return
	}
	inside, returned := s.run.Bounded(ctx)
	data, failure := f(inside, s)
	returned()
	if failure != nil && ctx.Err() != nil {
		s.Abandon()
		s.cron.report(once.Result{Key: s.Key, State: once.Unfinished, Attempt: s.Attempt}, failure)
		return
	}
	if failure != nil {
		recipe.Report(s.cron.client, slog.LevelWarn, event.Event{
			Kind: event.Failed, Path: s.cron.path, Err: fmt.Errorf("slot %s, attempt %d: %w", s.Key, s.Attempt, failure),
		})
	}
	ending, cancel := recipe.Grace(ctx)
	defer cancel()
	res, err := s.End(ending, data, failure)
	s.cron.report(res, recipe.Joined(failure, err))
}

// End puts the end of a slot on record, failed if failure is not nil, and
// releases the hold: see [once.Run.End]. If there are [Attempts] left after a
// failure, the slot is run again, unless the failure is that the data are too
// large.
func (s *Slot) End(ctx context.Context, data []byte, failure error) (once.Result, error) {
	if failure == nil || s.Attempt >= s.cron.attempts {
		_ = s.leave(ctx) // otherwise those who look at the record do so
	}
	return s.run.End(ctx, data, failure)
}

// Abandon leaves the slot to another client, without an end on record and
// without waiting for an answer. The attempt counts.
func (s *Slot) Abandon() { s.run.Abandon() }

// State is how far a schedule has come.
type State struct {
	Through time.Time   // the newest slot that was chosen or left out, or when the first client came
	Open    []time.Time // chosen, and not known to have ended
	LeftOut int         // how many were left out so far, but for the older ones of more than 10,000 at once
	// Next is when the next slot is due, or zero if there is none. If this
	// client's schedule has none, it is what another has noted.
	Next time.Time
	// Ahead is by how much Through was in the future when it was noted, by the
	// ensemble's clock, if that is more than two minutes. A client's clock was
	// wrong, or the servers': no slot is due before Through ([Cron.Rewind]).
	Ahead time.Duration
}

// State returns how far the schedule has come: one read. It is zero, but for
// Next, if no client has come yet.
func (c *Cron) State(ctx context.Context) (State, error) {
	s, now := State{}, c.clock()
	m := &mark{Through: now}
	data, stat, err := c.client.Get(ctx, c.marked())
	if err == nil {
		m, err = c.decode(data, stat)
	}
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return s, c.failed("state", err)
	}
	d, err := c.due(m.Through, now)
	s.Next = d.at
	if !d.slot.IsZero() {
		s.Next = c.begins(d.slot)
	}
	for _, o := range m.Open {
		s.Open = append(s.Open, o.Slot)
	}
	if stat.Czxid != 0 {
		if s.Next.IsZero() {
			s.Next = m.Next
		}
		s.Through, s.LeftOut, s.Ahead = m.Through, m.LeftOut, m.ahead(stat)
	}
	return s, c.failed("state", err)
}
