package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// pretended is a hold that lasts until it is released.
type pretended struct {
	ctx context.Context
	end context.CancelCauseFunc
}

func pretend() *pretended {
	ctx, end := context.WithCancelCause(context.Background())
	return &pretended{ctx, end}
}

func (p *pretended) Done() <-chan struct{}         { return p.ctx.Done() }
func (p *pretended) Err() error                    { return context.Cause(p.ctx) }
func (p *pretended) Deadline() time.Time           { return time.Now().Add(time.Hour) }
func (p *pretended) Release(context.Context) error { p.end(errors.New("released")); return nil }

func write(t *testing.T, w *Worker, token int64) *history.Grant[*pretended] {
	t.Helper()
	g, err := history.Acquire(w.Rec, w.Name, w.Key, history.Exclusive,
		func() (*pretended, error) { return pretend(), nil }, history.Token(token))
	require.NoError(t, err)
	return g
}

func reader() *Worker {
	rec := history.New()
	rec.ByChecks()
	return NewWorker(&Site{Name: "c1", Rec: rec}, "shared.w", "rwlock", "/shared", rand.New(rand.NewPCG(1, 1)), nil)
}

func judged(w *Worker) []history.Violation {
	return history.ReadersWriter(w.Key).Judge(w.Rec.Records()).Violations
}

func TestAWriterThatGetsInDuringADowngradeIsSeen(t *testing.T) {
	for _, gap := range []bool{false, true} {
		w := reader()
		g := write(t, w, 1)
		read, err := downgrade(w, g, func() (*pretended, error) {
			if gap {
				require.NoError(t, write(t, w, 2).Release(t.Context()))
			}
			return pretend(), g.Hold.Release(t.Context())
		})
		require.NoError(t, err)
		require.True(t, read.Trusted())
		require.NoError(t, read.Release(t.Context()))
		<-read.Recorded()
		require.Equal(t, gap, len(judged(w)) > 0)
	}
}

func TestADowngradeThatFailsLeavesNothingHeld(t *testing.T) {
	w := reader()
	g := write(t, w, 1)
	_, err := downgrade(w, g, func() (*pretended, error) {
		require.NoError(t, g.Hold.Release(t.Context()))
		return nil, errors.New("session over")
	})
	require.Error(t, err)
	require.NoError(t, write(t, w, 2).Release(t.Context()))
	require.Empty(t, judged(w))
}

func TestNodesAreToldOfUnderTheKeysOfTheirRecipes(t *testing.T) {
	for node, key := range map[string]string{
		"/shards/keys/k3/_c_1-lock-1": "/shards/keys/k3", "/shards/members/_c_1-member-1": "/shards",
		"/shards/keys/07/job/_c_1-lock-1": "/shards",
	} {
		require.Equal(t, key, KeyOf("/shards", node))
		require.Equal(t, "/shards", RecipeAt(key))
	}
}

func TestTheClockKnowsHowLateTimersWere(t *testing.T) {
	begin := time.Now()
	c := Clock{due: begin}
	c.note(begin.Add(time.Second))
	c.note(c.due.Add(2 * Beat))
	c.note(c.due)
	require.Equal(t, time.Second, c.Worst(begin))
	require.Equal(t, 2*Beat, c.Worst(begin.Add(time.Second)))
	require.Zero(t, c.Worst(c.due))
	require.Equal(t, 2*time.Second+time.Second+2*Beat, c.Slack(begin))
}
