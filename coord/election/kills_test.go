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

// reign is a term as its leader saw it.
type reign struct {
	token       int64
	begin, end  time.Time
	session     int64
	client      *coord.Client
	stopReplica context.CancelFunc
}

// chronicle records reigns and finds fault with them.
type chronicle struct {
	mu    sync.Mutex
	begun chan *reign
	last  *reign
	fault error
	over  bool // a term that is not over when the next begins is no fault
}

// lead is the function that replicas run while they lead.
func (h *chronicle) lead(c *coord.Client, stop context.CancelFunc) func(context.Context, *election.Term) error {
	return func(ctx context.Context, t *election.Term) error {
		r := &reign{token: t.Token(), begin: time.Now(), session: t.Session(), client: c, stopReplica: stop}
		h.mu.Lock()
		if last := h.last; last != nil && h.fault == nil {
			switch {
			case r.token <= last.token:
				h.fault = fmt.Errorf("token %d after %d", r.token, last.token)
			case last.end.IsZero() && !h.over:
				h.fault = fmt.Errorf("term %d begins while term %d is trusted", r.token, last.token)
			}
		}
		h.last, h.over = r, false
		h.mu.Unlock()
		h.begun <- r
		<-ctx.Done()
		h.mu.Lock()
		r.end = time.Now()
		h.mu.Unlock()
		return ctx.Err()
	}
}

func (h *chronicle) verdict() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

// kinds of deaths of a leader.
const (
	dies    = iota // the process is gone: nothing is heard of it any more
	cutOff         // it comes back when its session is over
	expires        // an operator ends its session; the leader hears of it later
	kinds
)

// TestTwoHundredLeadersAreKilled is in virtual time, so that every moment is
// exact.
func TestTwoHundredLeadersAreKilled(t *testing.T) {
	const kills = 200
	inBubble(t, func(b bubble) {
		h := &chronicle{begun: make(chan *reign, 10)}
		var running sync.WaitGroup
		replica := func() {
			ctx, cancel := context.WithCancel(b.Context())
			c := b.open()
			e, err := election.New(c, "/election")
			require.NoError(b, err)
			running.Go(func() { _ = e.Run(ctx, nil, h.lead(c, cancel)) })
		}
		for range 3 {
			replica()
		}
		r, worst := <-h.begun, time.Duration(0)
		for i := range kills {
			time.Sleep(rand.N(2 * T))
			killed, kind := time.Now(), i%kinds
			cut := b.kill(h, r, kind)
			next := <-h.begun
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
		require.NoError(b, h.verdict())
		b.Logf("%d kills, longest gap %v", kills, worst)
		b.closeAll()
		running.Wait()
	})
}

func (b bubble) kill(h *chronicle, r *reign, kind int) *zkembed.Partition {
	b.Helper()
	if kind != expires {
		return b.srv.Partition(zkembed.Cut{Sessions: []int64{r.session}})
	}
	h.mu.Lock()
	h.over = true // it cannot know yet
	h.mu.Unlock()
	require.NoError(b, b.srv.ExpireSession(r.session))
	return nil
}
