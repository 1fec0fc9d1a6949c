package soak

import (
	"context"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/history"
)

type cycle = func(context.Context) error

// holder is a hold of any recipe.
type holder interface {
	history.Holder
	Txn(ctx context.Context, ops ...coord.Op) ([]coord.Result, error)
	Token() int64
}

func lockWorker(w *worker) (cycle, error) {
	m, err := lock.New(w.client, w.key)
	return func(ctx context.Context) error {
		if w.rng.IntN(10) == 0 {
			return occupy(ctx, w, history.Exclusive, m.TryAcquire)
		}
		return occupy(ctx, w, history.Exclusive, m.Acquire)
	}, err
}

func electionWorker(w *worker) (cycle, error) {
	e, err := election.New(w.client, w.key)
	return func(ctx context.Context) error {
		return occupy(ctx, w, history.Exclusive, func(ctx context.Context) (*election.Term, error) {
			return e.Campaign(ctx, []byte(w.name))
		})
	}, err
}

// occupy acquires, uses the resource for a while, and releases.
func occupy[H history.Holder](ctx context.Context, w *worker, kind history.Kind, acquire func(context.Context) (H, error), details ...history.Detail) error {
	g, err := obtain(ctx, w, kind, acquire, details...)
	if err != nil {
		return err
	}
	stay(ctx, w, g)
	return w.release(g.Release)
}

// obtain acquires, with the patience that the worker has this time.
func obtain[H history.Holder](ctx context.Context, w *worker, kind history.Kind, acquire func(context.Context) (H, error), details ...history.Detail) (*history.Grant[H], error) {
	limited, cancel := w.patience(ctx)
	defer cancel()
	return history.Acquire(w.rec, w.name, w.key, kind, func() (H, error) {
		begin := time.Now()
		h, err := acquire(limited)
		w.ended(limited, begin, err)
		if err == nil {
			w.heed(w.name, h)
		}
		return h, err
	}, details...)
}

func (w *worker) release(release func(context.Context) error) error {
	err := release(context.Background())
	if err != nil {
		w.count("releases not confirmed")
	}
	return err
}

// stay holds for a while. Each step uses the resource first and looks at the
// hold then, as a careless program would: if it was paused in between, it is
// for the resource to refuse.
func stay[H history.Holder](ctx context.Context, w *worker, g *history.Grant[H]) {
	end := time.Now().Add(w.stay())
	h, exclusive := any(g.Hold).(holder)
	exclusive = exclusive && h.Token() != 0
	for {
		if before := time.Now(); exclusive && !w.use(w.place.name, h.Token()) {
			w.rec.Refused(w.name, w.key, h.Token(), before)
			w.count("uses refused by the resource")
		}
		if !g.Trusted() || ctx.Err() != nil || time.Now().After(end) {
			return
		}
		if exclusive && w.rng.IntN(10) == 0 {
			w.write(ctx, h)
		}
		step := min(time.Until(end)+time.Millisecond, 15*time.Millisecond)
		select {
		case <-g.Hold.Done():
		case <-ctx.Done():
		case <-time.After(step):
		}
	}
}

func (w *worker) stay() time.Duration {
	if w.quiet.Load() {
		return short[0]
	}
	least, most := w.place.hold[0], w.place.hold[1]
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// write puts the token into a node by a transaction, which must fail once
// another holds.
func (w *worker) write(ctx context.Context, h holder) {
	ctx, cancel := context.WithTimeout(ctx, T)
	defer cancel()
	results, err := h.Txn(ctx, coord.SetOp(w.fence(), []byte(strconv.FormatInt(h.Token(), 10)), -1))
	switch {
	case err == nil:
		w.wrote(w.place.name, results[0].Stat.Mzxid, h.Token())
	case !expected(err):
		w.problem("%s: transaction: %v", w.name, err)
	}
}

// fence is the node that transactions of the place write to.
func (w *worker) fence() string { return w.root + "/fence-" + w.place.name }
