package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
)

// ScheduleReport is what inspect shows of a schedule, besides the ledger of its
// slots.
type ScheduleReport struct {
	Through  time.Time `json:"through"`   // the newest slot that was chosen or left out
	Open     []string  `json:"open"`      // slots that were chosen, and are not known to have ended
	LeftOut  int       `json:"left_out"`  // slots, so far
	LastSlot *float64  `json:"last_slot"` // seconds since the newest slot on record was due; null: there is none
	// LastSuccess is the time in seconds since the newest successful slot was
	// due; null: none on record succeeded.
	LastSuccess *float64 `json:"last_success"`
	Failing     int      `json:"failing"` // how many slots failed in a row, counted from the newest that ended
	// Ahead is by how many seconds the mark was in the future when it was
	// noted, if that is too much.
	Ahead   float64  `json:"mark_ahead"`
	Jobs    []string `json:"jobs"`    // that run at present, as their processes describe them
	Members int      `json:"members"` // the processes that run them
	// NextDue is the time in seconds until the next slot is due, below 0 when
	// the slot is overdue; null: not known, or there is none.
	NextDue *float64 `json:"next_due"`
	// Hanging is a slot that has been under way for longer than the time
	// between two slots, or "".
	Hanging  string    `json:"hanging"`
	Next     time.Time `json:"-"` // zero: not known, or there is none
	unserved string
}

// never is a schedule for looking only.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// schedule finds out whether there is a schedule at path, and its state.
func (r *Report) schedule(ctx context.Context, client *coord.Client, path conn.NodePath) (found bool, err error) {
	c, err := cron.New(client, string(path), never{})
	if err != nil {
		return false, err
	}
	state, err := c.State(ctx)
	switch {
	case errors.Is(err, coord.ErrInvalid), err == nil && state.Through.IsZero():
		return false, nil // the mark is another's
	case err != nil && !errors.Is(err, coord.ErrNoAuth):
		return false, err
	}
	r.is(cronKind)
	r.Schedule = &ScheduleReport{
		Through: state.Through, Open: []string{}, LeftOut: state.LeftOut, Ahead: term.Seconds(state.Ahead), Next: state.Next,
		unserved: Unserved(state),
	}
	for _, slot := range state.Open {
		r.Schedule.Open = append(r.Schedule.Open, cron.Key(slot))
	}
	if !state.Next.IsZero() {
		left := term.Seconds(time.Until(state.Next))
		r.Schedule.NextDue = &left
	}
	return true, r.jobs(ctx, c)
}

// jobs finds out which jobs the schedule runs.
func (r *Report) jobs(ctx context.Context, c *cron.Cron) error {
	jobs, err := c.Jobs(ctx)
	r.Schedule.Jobs = []string{}
	for _, job := range jobs {
		r.Schedule.Jobs = append(r.Schedule.Jobs, strings.ToValidUTF8(job.Text, "�"))
		r.Schedule.Members += job.Clients
	}
	if errors.Is(err, coord.ErrNoAuth) {
		return nil
	}
	return err
}

// MarkAhead says, for people, that a schedule's mark lies in the future.
func MarkAhead(state cron.State) string {
	return markAhead(state.Ahead.Seconds(), state.Through)
}

func markAhead(seconds float64, through time.Time) string {
	return fmt.Sprintf("the mark was %s in the future when it was noted: no slot is due before %s", term.Age(seconds),
		cron.Key(through))
}

// Unserved says, for people, that nobody serves a schedule; or "".
func Unserved(state cron.State) string {
	since := time.Since(state.Next)
	return is(!state.Next.IsZero() && len(state.Open) == 0 && since > dueFor,
		"nobody has begun the slot that was due %s ago", term.Age(since.Seconds()))
}

// HasSlot reports whether a slot of a schedule was chosen: whether it is under
// way, or on record.
func (r *Report) HasSlot(at time.Time) bool {
	key := cron.Key(at)
	return slices.Contains(r.Schedule.Open, key) ||
		slices.ContainsFunc(r.Ledger.all, func(res once.Result) bool { return res.Key == key })
}

// conclude works out the schedule's health from the records of its slots.
func (s *ScheduleReport) conclude(slots []once.Result) {
	at := func(res once.Result) time.Time {
		slot, _ := time.Parse(time.RFC3339Nano, res.Key) // zero: not a schedule's
		return slot
	}
	newest := slices.SortedFunc(slices.Values(slots), func(a, b once.Result) int { return at(b).Compare(at(a)) })
	failing := true
	for _, res := range newest {
		switch res.State {
		case once.Done:
			if s.LastSuccess == nil {
				s.LastSuccess = term.SinceThen(at(res))
			}
			failing = false
		case once.Failed, once.Unfinished:
			if failing {
				s.Failing++
			}
		}
	}
	if len(newest) > 0 {
		s.LastSlot = term.SinceThen(at(newest[0]))
	}
	if len(newest) < 2 {
		return
	}
	apart := max(shortest, at(newest[0]).Sub(at(newest[1])))
	for _, res := range newest {
		if res.State == once.Running && time.Since(res.Begun) > apart {
			s.Hanging = res.Key
		}
	}
}

func (s *ScheduleReport) String() string {
	text := ""
	if s.LastSuccess != nil {
		text = "last success " + term.Age(*s.LastSuccess) + " ago"
	} else if s.LastSlot != nil {
		text = "last slot " + term.Age(*s.LastSlot) + " ago, none ended well"
	} else {
		text = "no slot on record"
	}
	switch {
	case s.NextDue != nil && *s.NextDue >= 0:
		text += ", next due in " + term.Age(*s.NextDue)
	case s.NextDue != nil:
		text += ", next due since " + term.Age(-*s.NextDue)
	}
	if s.Members > 0 {
		text += ", " + term.Plural(s.Members, "member", "members")
	}
	if len(s.Open) > 0 {
		text += fmt.Sprintf(", %d under way", len(s.Open))
	}
	if s.LeftOut > 0 {
		text += fmt.Sprintf(", %d left out", s.LeftOut)
	}
	return text
}
