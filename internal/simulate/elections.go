package simulate

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/history"
)

// campaign stands for election and leads for a while.
func campaign(k *worker, ctx context.Context, c *coord.Client) bool {
	e := must(election.New(c, k.key))
	var term *election.Term
	g, ok := k.acquire(ctx, k.key, history.Exclusive, "Campaign", func() (h *coord.Hold, err error) {
		if term, err = e.Campaign(ctx, []byte(k.name)); err != nil {
			return nil, err
		}
		return term.Hold, nil
	})
	if !ok {
		return false
	}
	if k.untimed(); chance(k.r, 0.5) {
		proclaiming, cancel := context.WithTimeout(term.Context(context.Background()), k.part(k.r, 0, 1))
		k.waited(proclaiming, "Proclaim", term.Proclaim(proclaiming, []byte(k.name+", again")), coord.ErrLost, coord.ErrReleased, coord.ErrUnconfirmed)
		cancel()
	}
	k.use(c, g.Hold, k.resources[k.key])
	k.release(g)
	return true
}

// leadAgain campaigns and leads in a loop of the recipe's own, until the last
// fault, or after it, for one term.
func leadAgain(k *worker, ctx context.Context, c *coord.Client) bool {
	e := must(election.New(c, k.key))
	last, until := k.isCalm(), k.untilCalm
	if last {
		until = context.WithCancel
	}
	ctx, cancel := until(ctx)
	defer cancel()
	k.untimed()
	inside, terms := false, 0
	err := e.Run(ctx, []byte(k.name), func(_ context.Context, t *election.Term) error {
		if inside {
			k.violated("%s: two terms of one Run at once", k.name)
		}
		inside = true
		defer func() { inside = false }()
		g := k.taken(k.key, history.Exclusive, t.Hold)
		k.use(c, t.Hold, k.resources[k.key])
		if g.Trusted() {
			_ = g.End(history.Release, nil, func() error { return nil })
		}
		if terms++; last {
			cancel()
		}
		return nil
	})
	k.waited(ctx, "Run", err, coord.ErrUnconfirmed)
	return terms > 0
}

// observe follows the elections, which never go back in time.
func observe(k *worker, ctx context.Context, c *coord.Client) bool {
	e := must(election.New(c, k.key))
	if chance(k.r, 0.3) {
		l, err := e.Leader(ctx)
		k.waited(ctx, "Leader", err, election.ErrNoLeader)
		return err == nil && !l.None() || errors.Is(err, election.ErrNoLeader)
	}
	k.untimed()
	ctx, cancel := context.WithTimeout(ctx, k.part(k.r, 0.5, 5))
	defer cancel()
	last, any := int64(0), false
	for l, err := range e.Observe(ctx) {
		if err != nil {
			k.waited(ctx, "Observe", err)
			break
		}
		any = true
		k.count(k.counts, "leaders observed", 1)
		if l.None() {
			continue
		}
		if l.Token < last {
			k.violated("%s: the election with token %d was shown after %d", k.name, l.Token, last)
		}
		last = l.Token
	}
	return any
}
