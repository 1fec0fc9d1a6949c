package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Ledger is a ledger of jobs as its workers use it. Its jobs are numbered.
// Workers ask for one of the last three, and for the last when the faults are
// over; when the last is over, the next one becomes the last.
type Ledger struct {
	Opts []once.Option

	last atomic.Int64
}

// over notes that a job is not run any more.
func (l *Ledger) over(job int64) { l.last.CompareAndSwap(job, job+1) }

// Do asks for a job, and runs it if the job is to run.
func (l *Ledger) Do(w *Worker, c *coord.Client) bool {
	o := must(once.New(c, w.Key, l.Opts...))
	job := l.last.Load()
	if !w.isCalm() { // afterwards a run is due, and the others may be over
		job = max(0, job-w.Rand.Int64N(3))
	}
	w.items++
	result := fmt.Sprint(w.Name, "-", w.items)
	item := history.Item(fmt.Sprint(job))
	op := w.Rec.Call(w.Name, w.Key, history.Run, item, history.Verdict(result))
	ask := w.Rec.Call(w.Name, w.Key, history.Ask, item)
	what, begin := "Begin", o.Begin
	if w.tries() {
		what, begin = "TryBegin", o.TryBegin
	}
	beginning := w.call()
	w.Flush()
	r, res, err := begin(beginning.ctx, fmt.Sprint(job))
	beginning.end(what, err, coord.ErrBusy, once.ErrFailed, once.ErrUnfinished)
	if r != nil {
		ask.End(history.Failed, nil)
		g := history.Granted(op, r)
		w.Granted(w, r)
		w.Count("jobs begun")
		linger(w, g)
		if endRun(w, g, func(ctx context.Context, failure error) error {
			_, err := r.End(ctx, []byte(result), failure)
			return err
		}) {
			l.over(job)
		}
		return true
	}
	op.End(history.Failed, err)
	switch {
	case err == nil:
		ask.End(history.OK, nil, history.Verdict(string(res.Data)))
		w.Count("results asked for")
	case errors.Is(err, once.ErrFailed), errors.Is(err, once.ErrUnfinished):
		ask.End(history.Failed, err)
		w.Count("jobs given up")
	default:
		ask.End(history.Failed, err)
		return false
	}
	l.over(job)
	return true
}

// aRun is a run of a job, or of a slot.
type aRun interface {
	history.Holder
	Abandon()
}

// endRun ends a run: mostly well, sometimes as failed, sometimes without a
// record, as a crash does. It reports whether the run ended well.
func endRun[R aRun](w *Worker, g *history.Grant[R], end func(ctx context.Context, failure error) error) bool {
	how := w.Rand.Float64()
	if how < 0.1 {
		w.release("a run", func(ctx context.Context) error {
			return g.ReleaseBy(ctx, func(context.Context) error {
				g.Hold.Abandon()
				return nil
			})
		})
		return false
	}
	ending := w.mostlyCertain()
	kind, failure := history.Did, error(nil)
	if how < 0.25 {
		kind, failure = history.Release, errors.New("no luck")
	}
	err := g.End(kind, func(err error) bool { return errors.Is(err, coord.ErrUnconfirmed) }, func() error {
		w.Flush()
		return end(ending.ctx, failure)
	})
	ending.end("End", err, coord.ErrLost, coord.ErrUnconfirmed)
	if err != nil {
		w.Count("ends not on record")
	}
	return err == nil && failure == nil
}
