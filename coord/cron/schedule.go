package cron

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Schedule says when a job is due. Next returns the first instant after t, or
// the zero time if there is none. It is given times in UTC, and must be safe
// for concurrent use. The schedules that github.com/robfig/cron/v3 parses are
// such ones.
//
// All clients should use the same schedule. One whose instants depend on t, as
// "every 5 minutes from now", is counted from the newest slot on record.
type Schedule interface {
	Next(t time.Time) time.Time
}

// In returns s by the clock of loc: s is given times in loc. When the clocks
// there change, s decides what is a slot. The schedules of robfig/cron leave
// out a time of day that is skipped, and have two slots for one that comes
// twice, which is right for "every 5 minutes".
func In(loc *time.Location, s Schedule) Schedule { return located{loc, s} }

type located struct {
	loc *time.Location
	Schedule
}

func (l located) Next(t time.Time) time.Time { return l.Schedule.Next(t.In(l.loc)) }

// WallClock returns s by the clock on the wall in loc, on which each time of
// day is one slot: a time that is skipped when the clocks go forward moves to
// the moment at which they do, and a time that comes twice when they go back
// counts the first time. That is right for "every night at 2:30". s is given
// what the clock on the wall shows, as a time in UTC.
func WallClock(loc *time.Location, s Schedule) Schedule { return onWall{loc, s} }

type onWall struct {
	loc *time.Location
	Schedule
}

func (o onWall) Next(t time.Time) time.Time {
	for shown := show(t, o.loc); ; {
		next := o.Schedule.Next(shown)
		if next.IsZero() {
			return next
		}
		if !next.After(shown) {
			return t // which is not later either
		}
		if at := o.instant(next); at.After(t) {
			return at
		}
		shown = next
	}
}

// show returns what the clock in loc shows at t, as a time in UTC.
func show(t time.Time, loc *time.Location) time.Time {
	t = t.In(loc)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instant returns the first instant at which the clock shows this, or the one
// at which the clock goes forward past it.
func (o onWall) instant(shown time.Time) time.Time {
	const day = 24 * time.Hour
	var at time.Time
	for _, near := range []time.Duration{day, -day} { // last, the offset before a change
		_, offset := shown.Add(near).In(o.loc).Zone()
		t := shown.Add(-time.Duration(offset) * time.Second)
		if show(t, o.loc).Equal(shown) {
			at = t
		} else if at.IsZero() && near < 0 {
			at, _ = t.In(o.loc).ZoneBounds()
		}
	}
	return at
}

// incomplete reports whether a schedule cannot be asked.
func incomplete(s Schedule) bool {
	switch s := s.(type) {
	case located:
		return s.loc == nil || incomplete(s.Schedule)
	case onWall:
		return s.loc == nil || incomplete(s.Schedule)
	}
	return s == nil
}

// next returns the slot after t; it is zero if there is none.
func (c *Cron) next(t time.Time) (time.Time, error) {
	n := c.schedule.Next(t.UTC())
	if !n.IsZero() && !n.After(t) {
		return n, fmt.Errorf("%w: the schedule's Next(%v) is %v, which is not later", coord.ErrInvalid, t, n)
	}
	return n.UTC().Round(0), nil
}

// due is what a client finds by its clock.
type due struct {
	all    int       // how many slots are due
	newest time.Time // of them
	slot   time.Time // of them, to be run first; zero if there is none
	left   int       // how many before that are not run
	at     time.Time // when the next one is due; zero if there is none
}

// enough bounds how many slots are gone through one by one; of more, the older
// half is left out unseen.
const enough = 10_000

// due returns what is due after a slot.
func (c *Cron) due(after, now time.Time) (due, error) {
	var d due
	var run []time.Time
	for steps := 1; ; steps++ {
		if steps%enough == 0 {
			after = after.Add(now.Sub(after) / 2)
		}
		n, err := c.next(after)
		if err != nil {
			return d, err
		}
		if n.IsZero() {
			break
		}
		if at := c.begins(n); at.After(now) {
			d.at = at
			break
		}
		after, d.newest = n, n
		d.all++
		run = append(run[max(0, len(run)+1-c.catchUp):], n)
	}
	if c.late > 0 {
		run = slices.DeleteFunc(run, func(n time.Time) bool { return now.Sub(c.begins(n)) > c.late })
	}
	if len(run) > 0 {
		d.slot, d.left = run[0], d.all-len(run)
	}
	return d, nil
}
