package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// mark is how far the schedule has come; all clients agree on it. A slot is
// chosen by a change of the mark, in the order of the schedule, whatever the
// clients' clocks say. It is run only while the mark names it: before each run,
// the holder of the slot's lock notes in the mark that the run begins.
type mark struct {
	Through time.Time `json:"through,omitzero"`  // the newest slot that was chosen or left out; at first, none
	Open    []open    `json:"open,omitempty"`    // chosen, and not known to have ended
	LeftOut int       `json:"leftOut,omitempty"` // of all slots so far
	// Next is when the slot after Through is due, for those who do not know the
	// schedule. It decides nothing.
	Next time.Time `json:"next,omitzero"`
}

// open is a slot that was chosen.
type open struct {
	Slot  time.Time `json:"slot"`
	Begun int       `json:"begun,omitempty"` // how often its function was called, or was about to be
	Token int64     `json:"token,omitempty"` // of the hold that did so last
}

// leave removes a slot that is over.
func (m *mark) leave(slot time.Time) {
	m.Open = slices.DeleteFunc(m.Open, func(o open) bool { return o.Slot.Equal(slot) })
}

func (m *mark) encode() []byte {
	data, _ := json.Marshal(m) // never fails
	return data
}

func (c *Cron) marked() string { return c.path + "/mark" }

// decode reads the mark. The schedule begins when the mark is made, by the
// ensemble's clock.
func (c *Cron) decode(data []byte, stat coord.Stat) (*mark, error) {
	m := &mark{Through: stat.Created.UTC()}
	if err := json.Unmarshal(data, m); err != nil || m.Through.IsZero() {
		return nil, fmt.Errorf(
			"%w: %s: the data %.40q are no mark of a schedule; delete the node, and the schedule begins anew",
			coord.ErrInvalid, c.marked(), data)
	}
	return m, nil
}

// change changes the mark, if there is one. It may do so again when a reply was
// lost.
func (c *Cron) change(
	ctx context.Context, write func(context.Context, ...coord.Op) ([]coord.Result, error), decide func(m *mark) error,
) error {
	err := recipe.Retry(ctx, c.client, func(ctx context.Context) error {
		return recipe.NewRecord(c.client, c.marked()).Change(ctx, write, func(data []byte, stat coord.Stat) ([]byte, error) {
			if stat.Czxid == 0 {
				return nil, coord.ErrNoNode
			}
			m, err := c.decode(data, stat)
			if err == nil {
				err = decide(m)
			}
			if err != nil {
				return nil, err
			}
			m.Next = c.dueAfter(m.Through)
			return m.encode(), nil
		})
	})
	if errors.Is(err, coord.ErrNoNode) {
		err = nil // who looks next makes it
	}
	return err
}

// dueAfter returns when the next slot is due; zero if there is none.
func (c *Cron) dueAfter(t time.Time) time.Time {
	next, err := c.next(t)
	if err != nil || next.IsZero() {
		return time.Time{}
	}
	return c.begins(next)
}

// choose puts the next slot that is due into the mark, if there is room, and
// returns it.
func (c *Cron) choose(ctx context.Context) (slot time.Time, err error) {
	now, err := c.now(ctx)
	if err != nil {
		return slot, err
	}
	err = c.change(ctx, c.client.Txn, func(m *mark) error {
		d, err := c.due(m.Through, now)
		slot = time.Time{}
		if err == nil && !d.slot.IsZero() && len(m.Open) < c.beside {
			slot = d.slot
			m.Through, m.LeftOut = d.slot, m.LeftOut+d.left
			m.Open = append(m.Open, open{Slot: d.slot})
		}
		return err
	})
	return slot, err
}

// settle notes that a slot is over, as the ledger says.
func (c *Cron) settle(ctx context.Context, slot time.Time) error {
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	return c.change(ctx, c.client.Txn, func(m *mark) error { return c.over(m, slot, now) })
}

// over removes a slot, and with [Skip] leaves out those that are due by now.
func (c *Cron) over(m *mark, slot, now time.Time) error {
	before := len(m.Open)
	m.leave(slot)
	if !c.skip || len(m.Open) == before {
		return nil
	}
	d, err := c.due(m.Through, now)
	if err == nil && !d.newest.IsZero() {
		m.Through, m.LeftOut = d.newest, m.LeftOut+d.all
	}
	return err
}

// enter notes that the function is about to be called, or returns false if the
// mark does not name the slot: it is over, which the ledger may have forgotten.
func (s *Slot) enter(ctx context.Context) (is bool, err error) {
	c := s.cron
	now, err := c.now(ctx)
	if err != nil {
		return false, err
	}
	err = c.change(ctx, s.Txn, func(m *mark) error {
		i := slices.IndexFunc(m.Open, func(o open) bool { return o.Slot.Equal(s.At) })
		is = i >= 0
		if !is || m.Open[i].Token == s.Token() {
			return nil
		}
		is = c.attempts == 0 || m.Open[i].Begun < c.attempts
		if !is {
			return c.over(m, s.At, now) // it has begun so often, and its record was deleted
		}
		m.Open[i].Begun, m.Open[i].Token = m.Open[i].Begun+1, s.Token()
		return nil
	})
	return is && err == nil, err
}

// leave notes that the slot is over, before the ledger does: a slot that the
// mark names has not ended, even if it has no record.
func (s *Slot) leave(ctx context.Context) error {
	c := s.cron
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	return c.change(ctx, s.Txn, func(m *mark) error { return c.over(m, s.At, now) })
}
