package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Campaign stands for election and leads for a while.
func Campaign(w *Worker, c *coord.Client) bool {
	e := must(election.New(c, w.Key))
	g, ok := acquire(w, history.Exclusive, "Campaign", func(ctx context.Context) (*election.Term, error) {
		return e.Campaign(ctx, []byte(w.Name))
	})
	if !ok {
		return false
	}
	term := g.Hold
	if Chance(w.Rand, 0.5) {
		saying := w.within(term.Context(context.Background()), w.share(0, 1))
		saying.end("Proclaim", term.Proclaim(saying.ctx, []byte(w.Name+", again")), coord.ErrLost, coord.ErrReleased,
			coord.ErrUnconfirmed)
	}
	stay(w, c, g)
	w.release("Campaign", func(ctx context.Context) error { return g.ReleaseBy(ctx, term.Resign) })
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
		running.held()
		if inside {
			w.Violated("%s: two terms of one Run at once", w.Name)
		}
		inside = true
		defer func() { inside = false }()
		g := history.Granted(op, t)
		w.Granted(w, t)
		stay(w, c, g)
		if g.Trusted() {
			given(g)
		}
		terms++
		if terms == most || w.isCalm() {
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
	return follow(w, "leaders observed", e.Observe, func(l election.Leader) []int64 {
		if l.None() {
			return nil
		}
		return []int64{l.Token}
	})
}

// follow observes holders for a while, whose tokens never go back.
func follow[V any](
	w *Worker, counted string, observe func(context.Context) iter.Seq2[V, error], tokens func(V) []int64,
) (any bool) {
	watching, last := w.within(w.ctx, w.share(0.5, 5)), int64(0)
	var failed error
	for shown, err := range observe(watching.ctx) {
		failed = err
		if err != nil {
			break
		}
		any = true
		w.Count(counted)
		for _, token := range tokens(shown) {
			if token < last {
				w.Violated("%s: the holder with token %d was shown after %d", w.Name, token, last)
			}
			last = max(last, token)
		}
		if w.isCalm() {
			break
		}
	}
	watching.end("Observe", failed)
	return any
}

// Keep shuts a barrier and opens it again. It gives neither up half-way: a late
// effect of one call would look like an effect of the next. There is one
// keeper.
func Keep(w *Worker, c *coord.Client) bool {
	b := must(barrier.New(c, w.Key))
	op, shutting := w.Rec.Call(w.Name, w.Key, history.Shut), w.certain()
	err := b.Set(shutting.ctx)
	shutting.end("Set", err)
	if err != nil {
		op.End(history.Failed, err)
		return false
	}
	op.End(history.OK, nil)
	Pause(w.ctx, w.hold(w.Rand), w.Calm)
	end, opening := w.Rec.Call(w.Name, w.Key, history.Release, history.Of(op)), w.certain()
	err = b.Open(opening.ctx)
	opening.end("Open", err)
	end.End(outcome(err), err)
	return err == nil
}

// Pass waits until a barrier is open.
func Pass(w *Worker, c *coord.Client) bool {
	b := must(barrier.New(c, w.Key))
	op, waiting := w.Rec.Call(w.Name, w.Key, history.Pass), w.call()
	err := b.Wait(waiting.ctx)
	op.End(outcome(err), err)
	waiting.end("Wait", err)
	if err == nil {
		w.Granted(w, nil)
	}
	return err == nil
}

// Meet takes part in some rounds of a double barrier, one after the other.
func Meet(size int) Use {
	return func(w *Worker, c *coord.Client) bool {
		met := false
		for range 1 + w.Rand.IntN(3) {
			if !w.round(c, size) {
				break
			}
			met = true
		}
		return met
	}
}

// round enters, works and leaves.
func (w *Worker) round(c *coord.Client, size int) bool {
	var opts []doublebarrier.Option
	if Chance(w.Rand, 0.7) {
		opts = append(opts, doublebarrier.WaitForNextRound())
	}
	b := must(doublebarrier.New(c, w.Key, size, opts...))
	op, entering := w.Rec.Call(w.Name, w.Key, history.Enter), w.call()
	w.Flush()
	m, err := b.Enter(entering.ctx)
	allowed := []error{doublebarrier.ErrLate}
	if entering.ctx.Err() != nil {
		allowed = append(allowed, coord.ErrLost)
	}
	entering.end("Enter", err, allowed...)
	if err != nil {
		op.End(history.Failed, err)
		return false
	}
	g := history.Granted(op, m, history.Round(m.Round()), history.Weight(m.Count()))
	w.Granted(w, m)
	linger(w, g)
	if m.Err() == nil && (m.Index() < 0 || m.Index() >= size || m.Count() != size) {
		w.Violated("%s: member %d of %d", w.Name, m.Index(), m.Count())
	}
	w.leave(g)
	return true
}

// leave leaves a round, mostly with the patience to learn how it ended.
func (w *Worker) leave(g *history.Grant[*doublebarrier.Member]) {
	leaving := w.certain()
	if Chance(w.Rand, 0.2) {
		leaving.stop()
		leaving = w.call()
	}
	op := g.Ends(history.Leave)
	m := g.Hold
	results, err := m.Gather(leaving.ctx, result(m, m.Index()))
	leaving.end("Leave", err, coord.ErrLost, doublebarrier.ErrIncomplete)
	if g.Hold.Err() == nil {
		w.Violated("%s: has left with %v, and keeps its place", w.Name, err)
	}
	var incomplete *doublebarrier.IncompleteError
	switch {
	case err == nil:
		op.End(history.OK, nil, history.Verdict(history.Complete))
	case errors.As(err, &incomplete):
		op.End(history.OK, err, history.Verdict(fmt.Sprint("missing ", incomplete.Missing)))
		w.Count("rounds left with members missing")
	default:
		op.End(history.Unknown, err)
		return
	}
	for i := range m.Count() {
		missing := incomplete != nil && slices.Contains(incomplete.Missing, i)
		if len(results) != m.Count() || !missing && !bytes.Equal(results[i], result(m, i)) || missing && results[i] != nil {
			w.Violated("%s: round %d ended with %v, and member %d with %q", w.Name, m.Round(), err, i, results)
		}
	}
}

// result is what each member of a round leaves.
func result(m *doublebarrier.Member, index int) []byte {
	return fmt.Appendf(nil, "member %d of round %d", index, m.Round())
}
