package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	T    = coordtest.T
	tick = coordtest.Tick
)

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

// reign is a term, and what is needed to end it.
type reign struct {
	name        string // of the replica
	begin       time.Time
	session     int64
	stopReplica context.CancelFunc
}

const electionPath = "/election"

// lead is the function that a replica runs while it leads. It records its
// terms.
func lead(rec *history.Recorder, name string, begun chan<- reign, stop context.CancelFunc) func(context.Context, *election.Term) error {
	return func(ctx context.Context, t *election.Term) error {
		term := rec.Call(name, electionPath, history.Exclusive)
		term.End(history.OK, nil, history.Token(t.Token()))
		begun <- reign{name, time.Now(), t.Session(), stop}
		<-ctx.Done()
		term.Lost(t.Deadline(), t.Err())
		return ctx.Err()
	}
}

// kinds of deaths of a leader.
const (
	dies    = iota // the process is gone: nothing is heard of it any more
	cutOff         // it comes back when its session is over
	expires        // an operator ends its session; the leader hears of it later
	kinds
)

// TestTwoHundredLeadersAreKilled is in virtual time, so that every moment is
// exact. The history is judged: see package history.
func TestTwoHundredLeadersAreKilled(t *testing.T) {
	const kills = 200
	var rec *history.Recorder
	inBubble(t, func(b bubble) {
		rec = history.New()
		begun := make(chan reign, 10)
		var running sync.WaitGroup
		var clients []*coord.Client
		replica := func() {
			ctx, cancel := context.WithCancel(b.Context())
			c := b.Open(coord.WithTick(tick))
			clients = append(clients, c)
			name := fmt.Sprintf("replica %d.", len(clients))
			e, err := election.New(c, electionPath)
			require.NoError(b, err)
			running.Go(func() { _ = e.Run(ctx, nil, lead(rec, name, begun, cancel)) })
		}
		for range 3 {
			replica()
		}
		r, worst := <-begun, time.Duration(0)
		for i := range kills {
			time.Sleep(rand.N(2 * T))
			killed, kind := time.Now(), i%kinds
			cut := b.kill(rec, r, kind)
			next := <-begun
			gap := next.begin.Sub(killed)
			worst = max(worst, gap)
			require.LessOrEqual(b, gap, T+2*tick+500*time.Millisecond, "kill %d of kind %d", i, kind)
			if kind == dies {
				r.stopReplica()
				replica()
			}
			if cut != nil {
				cut.Heal()
			}
			r = next
		}
		b.Logf("%d kills, longest gap %v", kills, worst)
		rec.Break("replica", electionPath, "the test is over", time.Now(), T)
		b.Close(clients...)
		running.Wait()
	})
	require.GreaterOrEqual(t, rec.Len(), kills)
	history.Check(t, rec, history.Election(electionPath))
}

func (b bubble) kill(rec *history.Recorder, r reign, kind int) *zkembed.Partition {
	b.Helper()
	if kind != expires {
		return b.Server.Partition(zkembed.Cut{Sessions: []int64{r.session}})
	}
	from := time.Now()
	time.Sleep(time.Millisecond) // virtual time stands still otherwise
	require.NoError(b, b.Server.ExpireSession(r.session))
	rec.Break(r.name, electionPath, "session ended by an operator", from, 0) // the leader hears of it later
	return nil
}
