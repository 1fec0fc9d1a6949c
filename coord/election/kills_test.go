package election_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/zkembed"
)

// T is the session time-out in bubbles, tick the server's.
const (
	T    = 10 * time.Second
	tick = time.Second
)

// bubble is a server in virtual time. Its clients are closed at its end.
type bubble struct {
	*testing.T
	srv     *zkembed.Server
	clients *[]*coord.Client
}

func inBubble(t *testing.T, f func(b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(tick), zkembed.WithReaper(0))
		require.NoError(t, err)
		b := bubble{t, srv, new([]*coord.Client)}
		// Also when a test fails: what goes on in a bubble keeps its time going.
		defer func() { require.NoError(t, srv.Close()) }()
		defer b.closeAll()
		f(b)
	})
}

func (b bubble) open() *coord.Client {
	b.Helper()
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), coord.WithSessionTimeout(T), coord.WithTick(tick),
		coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			return b.srv.Dial(network, addr, time.Until(deadline))
		}))
	require.NoError(b, err)
	*b.clients = append(*b.clients, c)
	return c
}

func (b bubble) closeAll() {
	for _, c := range *b.clients {
		require.NoError(b, c.Close(context.Background()))
	}
}

// reign is a term, and what is needed to end it.
type reign struct {
	name        string // of the replica
	begin       time.Time
	session     int64
	stopReplica context.CancelFunc
}

const electionPath = "/election"

// lead is the function that a replica runs while it leads. It records its terms.
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
		replica := func() {
			ctx, cancel := context.WithCancel(b.Context())
			c, name := b.open(), fmt.Sprintf("replica %d.", len(*b.clients))
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
		b.closeAll()
		running.Wait()
	})
	require.GreaterOrEqual(t, rec.Len(), kills)
	history.Check(t, rec, history.Election(electionPath))
}

func (b bubble) kill(rec *history.Recorder, r reign, kind int) *zkembed.Partition {
	b.Helper()
	if kind != expires {
		return b.srv.Partition(zkembed.Cut{Sessions: []int64{r.session}})
	}
	from := time.Now()
	time.Sleep(time.Millisecond) // virtual time stands still otherwise
	require.NoError(b, b.srv.ExpireSession(r.session))
	rec.Break(r.name, electionPath, "session ended by an operator", from, 0) // the leader hears of it later
	return nil
}
