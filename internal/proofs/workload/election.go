package workload

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Campaign stands for election and leads for a while.
func Campaign(w *Worker, c *coord.Client) bool {
	e := must(election.New(c, w.Key))
	var term *election.Term
	g, ok := acquire(w, history.Exclusive, "Campaign", func(ctx context.Context) (_ *coord.Hold, err error) {
		if term, err = e.Campaign(ctx, []byte(w.Name)); err != nil {
			return nil, err
		}
		return term.Hold, nil
	})
	if !ok {
		return false
	}
	if Chance(w.Rand, 0.5) {
		ctx, cancel := context.WithTimeout(term.Context(context.Background()), w.share(0, 1))
		saying := &call{w: w, ctx: ctx, stop: cancel}
		saying.end("Proclaim", term.Proclaim(ctx, []byte(w.Name+", again")), coord.ErrLost, coord.ErrReleased, coord.ErrUnconfirmed)
	}
	stay(w, c, g)
	w.release("Campaign", g.Release)
	return true
}

// Lead campaigns and leads by Run, for some terms.
func Lead(w *Worker, c *coord.Client) bool {
	e := must(election.New(c, w.Key))
	running := w.call()
	most, terms, inside := 1, 0, false
	if !w.isCalm() {
		most += w.Rand.IntN(5)
	}
	op := w.Rec.Call(w.Name, w.Key, history.Exclusive)
	err := e.Run(running.ctx, []byte(w.Name), func(_ context.Context, t *election.Term) error {
		if running.held(); inside {
			w.Violated("%s: two terms of one Run at once", w.Name)
		}
		inside = true
		defer func() { inside = false }()
		g := history.Granted(op, t.Hold)
		w.Granted(w, t.Hold)
		stay(w, c, g)
		if g.Trusted() {
			given(g)
		}
		if terms++; terms == most || w.isCalm() {
			running.stop()
		}
		op = w.Rec.Call(w.Name, w.Key, history.Exclusive)
		return t.Err() // what a lost leader returns does not end Run
	})
	op.End(history.Failed, err)
	running.end("Run", err, coord.ErrUnconfirmed)
	return terms > 0
}

// Observe follows the elections, which never go back in time.
func Observe(w *Worker, c *coord.Client) bool {
	e := must(election.New(c, w.Key))
	if Chance(w.Rand, 0.3) {
		asking := w.call()
		l, err := e.Leader(asking.ctx)
		asking.end("Leader", err, election.ErrNoLeader)
		return err == nil && !l.None() || errors.Is(err, election.ErrNoLeader)
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.share(0.5, 5))
	watching := &call{w: w, ctx: ctx, stop: cancel}
	last, any := int64(0), false
	var failed error
	for l, err := range e.Observe(ctx) {
		if failed = err; err != nil {
			break
		}
		any = true
		w.Count("leaders observed")
		if !l.None() && l.Token < last {
			w.Violated("%s: the election with token %d was shown after %d", w.Name, l.Token, last)
		}
		if last = max(last, l.Token); w.isCalm() {
			break
		}
	}
	watching.end("Observe", failed)
	return any
}
