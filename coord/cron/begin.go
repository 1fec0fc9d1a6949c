package cron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Begin waits for a slot that this client is to run, and returns it: one that
// is due now, or one whose client has gone in the middle. It is the first half
// of [Cron.Run], for those who cannot run a slot in a function; the caller ends
// the slot by [Slot.End]. It fails with [ErrOver] when the schedule has no
// further slot and none is under way, and ends with ctx.
func (c *Cron) Begin(ctx context.Context) (*Slot, error) {
	for {
		s, err := c.begin(ctx)
		if s != nil || err != nil {
			return s, c.failed("begin", err)
		}
	}
}

// begin waits for something to do, and does it. It returns no slot if another
// client was faster.
func (c *Cron) begin(ctx context.Context) (*Slot, error) {
	var free time.Time // a slot that is nobody's; zero: one is to be chosen
	err := c.client.Wait(ctx, func(v *coord.View) (found bool, err error) {
		free, found, err = c.look(v)
		return found, err
	})
	switch {
	case err != nil:
		return nil, err
	case free.IsZero():
		if free, err = c.choose(ctx); free.IsZero() || err != nil {
			return nil, err
		}
	}
	return c.take(ctx, free)
}

// look finds a chosen slot that nobody has, or reports that a slot is to be
// chosen.
func (c *Cron) look(v *coord.View) (free time.Time, found bool, err error) {
	data, stat, err := recipe.NewRecord(c.client, c.marked()).Look(v, (&mark{Next: c.dueAfter(c.clock())}).encode())
	if err != nil {
		return free, false, err
	}
	m, err := c.decode(data, stat)
	if err != nil {
		return free, false, err
	}
	if err := c.enrol(v); err != nil {
		return free, false, err
	}
	isAhead, err := c.isAhead(v.Context(), m)
	if err != nil {
		return free, false, err
	}
	own, again := c.underWay(m)
	for _, o := range m.Open {
		key := Key(o.Slot)
		switch at := again[key]; {
		case own[key] != nil:
			v.RecheckOn(own[key].Done())
			continue
		case time.Now().Before(at):
			v.RecheckAt(at)
			continue
		}
		if found, err = c.isFree(v, key); found || err != nil {
			return o.Slot, found, err
		}
	}
	if len(m.Open) >= c.beside {
		return free, false, nil
	}
	now := c.clock()
	if next, err := c.next(m.Through); err == nil && !c.begins(next).After(now) {
		if now, err = c.now(v.Context()); err != nil {
			return free, false, err
		}
	}
	d, err := c.due(m.Through, now)
	switch {
	case err != nil || !d.slot.IsZero():
		return free, err == nil, err
	case !d.at.IsZero():
		v.RecheckAt(time.Now().Add(min(d.at.Sub(now), recheckEvery)))
	case isAhead: // and so the schedule may not be over
		v.RecheckAt(time.Now().Add(recheckEvery))
	case len(m.Open) == 0:
		return free, false, fmt.Errorf("%w: there is none after %v", ErrOver, m.Through)
	}
	return free, false, nil
}

// underWay returns which slots are under way here, and when to look at which
// others. The client that has chosen a slot has a moment to begin it.
func (c *Cron) underWay(m *mark) (own map[string]*Slot, again map[string]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, again = map[string]*Slot{}, map[string]time.Time{}
	maps.DeleteFunc(c.own, func(_ string, s *Slot) bool { return s.Err() != nil })
	for _, o := range m.Open {
		key := Key(o.Slot)
		own[key], again[key] = c.own[key], c.again[key]
		if again[key].IsZero() && o.Begun == 0 {
			again[key] = time.Now().Add(retryFloor)
		}
	}
	c.again = again
	return own, maps.Clone(again)
}

// isFree reports whether nobody holds the lock of a slot, or waits for it. If
// somebody does, the look is called again when that claim has gone: it watches
// the claim's node and not the directory, which may stay for long.
func (c *Cron) isFree(v *coord.View, key string) (bool, error) {
	line, err := c.ledger.Line(key)
	for err == nil {
		var names []string
		names, err = c.client.Children(v.Context(), line.Dir)
		if errors.Is(err, coord.ErrNoNode) {
			return true, nil
		}
		ahead := append(line.Order(names, c.client.Info().Dialect), line.Foreign(names, c.client.Info().Dialect)...)
		if len(ahead) == 0 || err != nil {
			break
		}
		_, _, err = v.Get(line.Dir + "/" + ahead[0].Name)
		if !errors.Is(err, coord.ErrNoNode) {
			return false, err
		}
		err = nil
	}
	return err == nil, err
}

// take tries to get the lock of a slot, and to begin an attempt.
func (c *Cron) take(ctx context.Context, slot time.Time) (*Slot, error) {
	key := Key(slot)
	var run *once.Run
	var res once.Result
	err := recipe.Retry(ctx, c.client, func(ctx context.Context) (err error) {
		run, res, err = c.ledger.TryBegin(ctx, key)
		return err
	})
	switch {
	case errors.Is(err, coord.ErrBusy):
		if res.State == once.Failed { // it is too early for the next attempt
			c.mu.Lock()
			defer c.mu.Unlock()
			c.again[key] = time.Now().Add(max(c.backoff, retryFloor))
		}
		return nil, nil
	case run == nil && err == nil, errors.Is(err, once.ErrFailed), errors.Is(err, once.ErrUnfinished):
		return nil, c.settle(ctx, slot)
	case err != nil:
		return nil, err
	}
	s := &Slot{Held: run.Held, At: slot, Key: key, Attempt: run.Attempt, Last: run.Last, cron: c, run: run}
	is, err := s.enter(ctx)
	if is && s.Err() == nil { // the answer may have come late
		c.mu.Lock()
		defer c.mu.Unlock()
		c.own[key] = s
		return s, nil
	}
	ending, cancel := recipe.Grace(ctx)
	defer cancel()
	_ = s.run.Withdraw(ending) // otherwise the attempt counts
	if errors.Is(err, coord.ErrLost) && ctx.Err() == nil {
		err = nil
	}
	return nil, err
}
