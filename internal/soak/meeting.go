package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/history"
)

// meetWorker takes part in the rounds of a double barrier.
func meetWorker(w *worker) (cycle, error) {
	b, err := doublebarrier.New(w.client, w.key, party, doublebarrier.WaitForNextRound())
	return func(ctx context.Context) error { return w.meet(ctx, b) }, err
}

func (w *worker) meet(ctx context.Context, b *doublebarrier.Barrier) error {
	limited, cancel := w.patience(ctx)
	defer cancel()
	op := w.rec.Call(w.name, w.key, history.Enter)
	w.told()
	begin := time.Now()
	m, err := b.Enter(limited)
	w.ended(limited, begin, err)
	if err != nil {
		op.End(history.Failed, err)
		return err
	}
	op.End(history.OK, nil, history.Round(m.Round()), history.Weight(m.Count()))
	sure := w.trust(ctx, m, time.Now().Add(w.stay()))
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stuckAfter)
	defer cancel()
	left := w.rec.Call(w.name, w.key, history.Leave, history.Of(op))
	if err := m.Err(); err != nil {
		op.Lost(sure, err)
	}
	err = m.Leave(leaving)
	var incomplete *doublebarrier.IncompleteError
	switch {
	case err == nil:
		left.End(history.OK, nil, history.Verdict(history.Complete))
	case errors.As(err, &incomplete):
		left.End(history.OK, err, history.Verdict(fmt.Sprint("missing ", incomplete.Missing)))
		w.count("rounds left with members missing")
		return nil
	default:
		left.End(history.Unknown, err)
	}
	return err
}
