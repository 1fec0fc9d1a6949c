package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

const (
	// ahead is how long before the ensemble's clock says so a slot may be due.
	ahead = time.Minute
	// tooFar is how far ahead no client can set the mark while the servers'
	// clock is right, though its knowledge of that clock may be behind.
	tooFar = 2 * ahead
)

// told is what the client's log and observers were told last.
type told struct {
	clock bool      // that it is ahead
	mark  time.Time // this one is
}

// now is the time by which this client says what is due: its own, but no more
// than a minute ahead of the ensemble's. Otherwise a client whose clock is
// wrong would take the slots of days or years from all others.
func (c *Cron) now(ctx context.Context) (time.Time, error) {
	own := c.clock()
	known, err := c.ensembleTime(ctx, own.Add(-ahead))
	if err != nil {
		return own, err
	}
	limit := known.Add(ahead)
	is := own.After(limit)
	c.mu.Lock()
	news := is && !c.told.clock
	c.told.clock = is
	c.mu.Unlock()
	if news {
		recipe.Report(c.client, slog.LevelWarn, event.Event{Kind: event.ClockAhead, Path: c.path, Err: fmt.Errorf(
			"this client's clock is %v ahead of the ensemble's: slots are due %v ahead of the latter",
			own.Sub(known).Round(time.Second), ahead)})
	}
	if is {
		return limit, nil
	}
	return own, nil
}

// ensembleTime returns the ensemble's time as far as this client knows it. It
// asks the servers if that time is before needed and a minute old.
func (c *Cron) ensembleTime(ctx context.Context, needed time.Time) (time.Time, error) {
	const forever = math.MaxInt64
	dir := c.path + "/log" // of the ledger, which writes no data there
	now, err := recipe.EnsembleTime(ctx, c.client, dir, forever)
	if err == nil && now.Before(needed) {
		now, err = recipe.EnsembleTime(ctx, c.client, dir, recheckEvery)
	}
	return now, err
}

// isAhead reports whether the mark lies in the future, which keeps all clients
// from running any slot, and tells the log and the observers, once.
func (c *Cron) isAhead(ctx context.Context, m *mark) (bool, error) {
	limit := m.Through.Add(-tooFar)
	now, err := c.clock(), error(nil)
	if now.Before(limit) {
		now, err = c.ensembleTime(ctx, limit)
	}
	if err != nil || !now.Before(limit) {
		return false, err
	}
	c.mu.Lock()
	news := !c.told.mark.Equal(m.Through)
	c.told.mark = m.Through
	c.mu.Unlock()
	if news {
		recipe.Report(c.client, slog.LevelError, event.Event{Kind: event.MarkAhead, Path: c.marked(), Err: fmt.Errorf(
			"the schedule has come to %v, which is %v ahead of the ensemble's clock: no slot is due until then (Cron.Rewind, cron --rewind)",
			m.Through, m.Through.Sub(now).Round(time.Second))})
	}
	return true, nil
}

// ahead returns how far the mark lay in the future, by the ensemble's clock,
// when it was written.
func (m *mark) ahead(stat coord.Stat) time.Duration {
	if d := m.Through.Sub(stat.Modified); d > tooFar {
		return d
	}
	return 0
}

// Rewind has a schedule go on whose mark lies in the future ([State.Ahead]):
// the schedule has come as far as the ensemble's clock then, and the records of
// later slots are deleted, so that these are run when they are due. It changes
// nothing if the mark lies less than two minutes ahead. It fails with
// [coord.ErrBusy] if one of the later slots is being run, whose record stays
// until Rewind is called again. Which slots were due meanwhile, and not run, is
// not known: none is made up for.
//
// First have the clocks set right: of the clients that ran the schedule, and of
// the servers.
func (c *Cron) Rewind(ctx context.Context) error {
	return c.failed("rewind", c.rewind(ctx))
}

func (c *Cron) rewind(ctx context.Context) error {
	now, err := recipe.EnsembleTime(ctx, c.client, c.path+"/log", 0)
	if err != nil {
		return err
	}
	limit := now.Add(tooFar)
	err = c.change(ctx, c.client.Txn, func(m *mark) error {
		if m.Through.After(limit) {
			m.Through = now.UTC().Round(0)
			m.Open = slices.DeleteFunc(m.Open, func(o open) bool { return o.Slot.After(limit) })
		}
		return nil
	})
	if err != nil {
		return err
	}
	var busy error
	for res, err := range c.ledger.List(ctx) {
		if err != nil {
			return err
		}
		if slot, bad := time.Parse(time.RFC3339Nano, res.Key); bad != nil || !slot.After(limit) {
			continue
		}
		if err := c.ledger.Forget(ctx, res.Key); errors.Is(err, coord.ErrBusy) {
			busy = err
		} else if err != nil {
			return err
		}
	}
	return busy
}
