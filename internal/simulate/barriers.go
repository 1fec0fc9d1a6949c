package simulate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/history"
)

// gate is a barrier that one worker shuts and opens, and the times at which it
// was certainly shut.
type gate struct {
	mu   sync.Mutex
	shut []closure
}

type closure struct{ from, to time.Duration }

// within tells whether the gate was shut for all of a time.
func (g *gate) within(from, to time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.shut {
		if c.from < from && to < c.to {
			return true
		}
	}
	return false
}

const open = time.Duration(1<<63 - 1)

// keep shuts and opens the gate. It must not be given up half-way, so it takes
// no notice of ctx and belongs to a client that is never replaced.
func (g *gate) keep(k *worker, _ context.Context, c *coord.Client) bool {
	b := must(barrier.New(c, k.key))
	if k.isCalm() {
		return true
	}
	k.untimed()
	err := b.Set(k.base)
	k.waited(k.base, "Set", err)
	if err != nil {
		return false
	}
	from := time.Since(k.begin)
	g.mu.Lock()
	g.shut = append(g.shut, closure{from, open})
	g.mu.Unlock()
	pause(k.part(k.r, 0, 1.5), k.calm)
	g.mu.Lock()
	g.shut[len(g.shut)-1].to = time.Since(k.begin)
	g.mu.Unlock()
	err = b.Remove(k.base)
	k.waited(k.base, "Remove", err)
	return err == nil
}

// pass waits until the gate is open.
func (g *gate) pass(k *worker, ctx context.Context, c *coord.Client) bool {
	b := must(barrier.New(c, k.key))
	from := time.Since(k.begin)
	err := b.Wait(ctx)
	k.waited(ctx, "Wait", err)
	if err != nil {
		return false
	}
	k.granted(k.recipe, k.key)
	if to := time.Since(k.begin); g.within(from, to) {
		k.violated("%s: passed the barrier from %v to %v, while it was shut", k.name, from, to)
	}
	return true
}

// party is those who meet at a double barrier.
type party struct {
	size int
	all  int          // workers
	met  atomic.Int32 // workers that had a round after the last fault
	over chan struct{}
}

// meet takes part in a round. After the last fault everybody goes on until all
// have had one, since nobody can have one alone.
func (p *party) meet(k *worker, ctx context.Context, c *coord.Client) bool {
	if !k.isCalm() {
		opts := []doublebarrier.Option{doublebarrier.WaitForNextRound()}
		if chance(k.r, 0.3) {
			opts = nil
		}
		return p.round(k, ctx, must(doublebarrier.New(c, k.key, p.size, opts...)))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.working.Go(func() {
		select {
		case <-p.over:
			cancel()
		case <-ctx.Done():
		}
	})
	for met := false; ctx.Err() == nil; {
		if p.round(k, ctx, must(doublebarrier.New(c, k.key, p.size, doublebarrier.WaitForNextRound()))) && !met {
			if met = true; int(p.met.Add(1)) == p.all {
				close(p.over)
			}
		}
		pause(time.Millisecond, ctx.Done())
	}
	return k.base.Err() == nil
}

// round enters, works and leaves.
func (p *party) round(k *worker, ctx context.Context, b *doublebarrier.Barrier) bool {
	enter := k.rec.Call(k.name, k.key, history.Enter)
	m, err := b.Enter(ctx)
	if ctx.Err() == nil || !errors.Is(err, coord.ErrLost) {
		k.waited(ctx, "Enter", err, doublebarrier.ErrLate)
	}
	if err != nil {
		enter.End(history.Failed, err)
		return false
	}
	enter.End(history.OK, nil, history.Round(m.Round()), history.Weight(m.Count()))
	if err := m.Err(); err != nil {
		enter.Lost(k.rec.Begin(), err) // before anybody could trust it
	}
	k.granted(k.recipe, k.key)
	left := make(chan struct{})
	defer close(left)
	k.working.Go(func() {
		select {
		case <-m.Done():
			if !errors.Is(m.Err(), coord.ErrReleased) {
				enter.Lost(time.Time{}, m.Err())
			}
		case <-left:
		}
	})
	p.work(k, m)
	if err := m.Err(); err != nil {
		enter.Lost(time.Time{}, err)
	}
	leaving, cancel := ctx, context.CancelFunc(func() {})
	if chance(k.r, 0.8) {
		k.untimed()
		leaving, cancel = context.WithCancel(k.base)
	}
	defer cancel()
	k.called = time.Now()
	leave := k.rec.Call(k.name, k.key, history.Leave, history.Of(enter))
	err = m.Leave(leaving)
	k.waited(leaving, "Leave", err, coord.ErrLost, doublebarrier.ErrIncomplete)
	if m.Err() == nil {
		k.violated("%s: has left with %v, and keeps its place", k.name, err)
	}
	switch {
	case err == nil:
		leave.End(history.OK, nil, history.Verdict(history.Complete))
	case errors.Is(err, doublebarrier.ErrIncomplete):
		leave.End(history.OK, nil, history.Verdict(err.Error()))
	default:
		leave.End(history.Unknown, err)
	}
	return true
}

// work is what a member does in a round.
func (p *party) work(k *worker, m *doublebarrier.Member) {
	timer := time.NewTimer(k.duration())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.Done():
	case <-k.calm:
	}
	if m.Err() == nil && (m.Index() < 0 || m.Index() >= p.size || m.Count() != p.size) {
		k.violated("%s: member %d of %d", k.name, m.Index(), m.Count())
	}
}
