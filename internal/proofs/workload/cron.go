package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Crontab is a schedule as its workers use it; all of one client share an
// object. One of them at least has a clock that is right.
type Crontab struct {
	Every    time.Duration // between two slots
	Opts     []cron.Option
	Ensemble func() time.Time // what the servers' clock shows

	crons perClient[*cron.Cron]

	mu            sync.Mutex
	behind, worst time.Duration // at the newest look, and since the last CatchesUp
}

// early is by how much, at most, a slot is due before the ensemble's clock says
// so, and how long at most nobody may look at a clock.
const early = time.Minute

// every is a schedule of equal distances.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Truncate(time.Duration(e)).Add(time.Duration(e)) }

// Run runs a slot, by a clock that may be wrong. After the last fault it is a
// turn, too, if others run the slots in time: a schedule does not promise each
// member its share.
func (t *Crontab) Run(clock func() time.Time) Use {
	return func(w *Worker, c *coord.Client) bool {
		s := t.crons.of(c, func() *cron.Cron {
			return must(cron.New(c, w.Key, every(t.Every), append(t.Opts, cron.Clock(clock))...))
		})
		w.items++
		result := fmt.Sprint(w.Name, "-", w.items)
		op := w.Rec.Call(w.Name, w.Key, history.Run, history.Verdict(result))
		beginning := t.call(w)
		w.Flush()
		slot, err := s.Begin(beginning.ctx)
		beginning.end("Begin", err)
		if err != nil {
			op.End(history.Failed, err)
			return w.isCalm() && t.isInTime(w, s)
		}
		if by := slot.At.Sub(t.Ensemble()); by > early {
			w.Violated("%s: the slot %s was begun %v before its time, by the ensemble's clock", w.Name, slot.Key, by)
		}
		g := history.Granted(op, slot, history.Item(slot.Key))
		w.Granted(w, slot)
		w.Count("slots begun")
		linger(w, g)
		endRun(w, g, func(ctx context.Context, failure error) error {
			_, err := slot.End(ctx, []byte(result), failure)
			return err
		})
		return true
	}
}

// call begins a call that waits for a slot.
func (t *Crontab) call(w *Worker) *call {
	if w.isCalm() {
		return w.within(w.ctx, t.Every)
	}
	return w.call().untilCalm()
}

// isInTime reports whether the schedule has come as far as it should have, and
// judges it if it has come further.
func (t *Crontab) isInTime(w *Worker, s *cron.Cron) bool {
	looking := w.within(w.ctx, w.Pace.Timeout)
	state, err := s.State(looking.ctx)
	looking.end("State", err)
	if err != nil || state.Through.IsZero() {
		return false
	}
	behind := t.Ensemble().Sub(state.Through)
	if behind < -early {
		w.Violated("%s: the schedule has come to %v, %v ahead of the ensemble's clock", w.Name, state.Through, -behind)
	}
	w.Count("schedules looked at")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind, t.worst = behind, max(t.worst, behind)
	return behind <= t.Every+early+w.Pace.Timeout
}

// CatchesUp reports whether the schedule is less behind than it was at some
// time since the last call.
func (t *Crontab) CatchesUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	catchesUp := t.behind < t.worst
	t.worst = t.behind
	return catchesUp
}
