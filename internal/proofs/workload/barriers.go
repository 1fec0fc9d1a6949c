package workload

import (
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// Keep shuts a barrier and opens it again. It gives neither up half-way: a late
// effect of one call could not be told from the next. There is one keeper.
func Keep(w *Worker, c *coord.Client) bool {
	b := must(barrier.New(c, w.Key))
	op, shutting := w.Rec.Call(w.Name, w.Key, history.Shut), w.certain()
	err := b.Set(shutting.ctx)
	if shutting.end("Set", err); err != nil {
		op.End(history.Failed, err)
		return false
	}
	op.End(history.OK, nil)
	pause(w.ctx, w.hold(w.Rand), w.Calm)
	end, opening := w.Rec.Call(w.Name, w.Key, history.Release, history.Of(op)), w.certain()
	err = b.Remove(opening.ctx)
	opening.end("Remove", err)
	end.End(outcome(err), err)
	return err == nil
}

// Pass waits until a barrier is open.
func Pass(w *Worker, c *coord.Client) bool {
	b := must(barrier.New(c, w.Key))
	op, waiting := w.Rec.Call(w.Name, w.Key, history.Pass), w.call()
	err := b.Wait(waiting.ctx)
	op.End(outcome(err), err)
	if waiting.end("Wait", err); err == nil {
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
	if entering.end("Enter", err, allowed...); err != nil {
		op.End(history.Failed, err)
		return false
	}
	g := history.Granted(op, m, history.Round(m.Round()), history.Weight(m.Count()))
	w.Granted(w, m)
	if linger(w, g); m.Err() == nil && (m.Index() < 0 || m.Index() >= size || m.Count() != size) {
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
	err := g.Hold.Leave(leaving.ctx)
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
	}
}
