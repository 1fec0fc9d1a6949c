package faults

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// storm is many acquires at a time that are cancelled at random moments.
type storm struct {
	s       scene
	clients []*coord.Client

	granted, cancelled atomic.Int64
	left               atomic.Int64 // of the cancelled, those that stood in line
}

// Of 1,000 acquires that are cancelled at random moments, in every stage from
// the create to the grant, nothing is left behind.
func TestF44ACancelStormLeavesNothing(t *testing.T) {
	each(t, func(s scene) {
		st := &storm{s: s}
		st.clients = s.clients(2, coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.ClaimEnded && errors.Is(e.Err, context.DeadlineExceeded) {
				st.left.Add(1)
			}
		}))
		for _, c := range st.clients {
			s.release(s.acquire(c))
		}
		base := len(goroutines(s.Name()))
		acquires := st.rage(10_000)
		waiting, before := st.stages()
		s.Logf("of %d, %d granted, %d cancelled while waiting, %d before", acquires, st.granted.Load(), waiting, before)
		require.True(s, st.enough(), "too few were cancelled")
		require.Positive(s, st.granted.Load())
		s.release(s.acquire(st.clients[0]))
		s.leavesNothing()
		require.Empty(s, s.drained(T, func() []string {
			now := goroutines(s.Name())
			return now[:max(0, len(now)-base)]
		}), "more goroutines than before")
	})
}

// stages returns how many were cancelled while they waited, and before.
func (st *storm) stages() (waiting, before int64) {
	left := st.left.Load()
	return left, st.cancelled.Load() - left
}

func (st *storm) enough() bool {
	waiting, before := st.stages()
	return waiting+before >= 1000 && waiting >= 100 && before >= 100
}

// rage begins acquires, 50 at a time, until enough were cancelled in every
// stage, or most were begun. It returns how many were begun.
func (st *storm) rage(most int) (begun int) {
	const shortest = 20 * time.Microsecond
	random, limit := st.s.random(), make(chan struct{}, 50)
	var wg sync.WaitGroup
	defer wg.Wait()
	for ; !st.enough() && begun < most; begun++ {
		m := st.s.mutex(st.clients[begun%2])
		limit <- struct{}{}
		// Of every order of magnitude: for every stage, on any machine.
		patience := math.Pow(float64(T/shortest), random.Float64()) * float64(shortest)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(patience))
		wg.Go(func() {
			defer func() { <-limit }()
			defer cancel()
			h, err := m.Acquire(ctx)
			if err != nil {
				st.cancelled.Add(1)
				return
			}
			st.granted.Add(1)
			st.s.wait(time.Millisecond, time.Now())
			if err := h.Release(context.Background()); err != nil {
				st.s.Error(err)
			}
		})
	}
	return begun
}
