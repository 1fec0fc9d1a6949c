package semaphore_test

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
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/zkembed"
)

// T is the session time-out in bubbles, tick the server's.
const (
	T    = 10 * time.Second
	tick = time.Second
)

// storm is a server in virtual time, its clients, and what they did.
type storm struct {
	*testing.T
	srv     *zkembed.Server
	dialect coord.Dialect
	rec     *history.Recorder
	clients []*coord.Client
	struck  map[string]int
}

const stormPath, stormLimit = "/semaphore", 3

func (s *storm) open() *coord.Client {
	s.Helper()
	c, err := coord.Open(s.Context(), s.srv.ConnectString(), coord.WithSessionTimeout(T), coord.WithTick(tick),
		coord.WithDialect(s.dialect),
		coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			return s.srv.Dial(network, addr, time.Until(deadline))
		}))
	require.NoError(s, err)
	return c
}

// work acquires and releases leases until ctx ends, and gives up now and then.
func (s *storm) work(ctx context.Context, i int) {
	sem, err := semaphore.New(s.clients[i], stormPath, stormLimit)
	require.NoError(s, err)
	name := fmt.Sprintf("client %d", i)
	for ctx.Err() == nil {
		n, patience := 1+rand.N(2), rand.N(3*T)
		acquire := sem.AcquireN
		if rand.N(4) == 0 {
			acquire = sem.TryAcquireN
		}
		g, err := history.Acquire(s.rec, name, stormPath, history.Lease, func() (*coord.Group, error) {
			trying, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return acquire(trying, n)
		}, history.Weight(n))
		if err != nil {
			time.Sleep(rand.N(T / 10))
			continue
		}
		select {
		case <-g.Hold.Done():
		case <-time.After(rand.N(T / 4)):
		}
		_ = g.Release(s.Context())
		<-g.Recorded()
	}
}

// strike does harm of some kind to some client, and undoes what can be undone.
func (s *storm) strike() {
	i := rand.N(len(s.clients))
	id, name := s.clients[i].SessionID(), fmt.Sprintf("client %d", i)
	switch kind := []string{"cut off", "expired", "dropped", "half cut", "lost replies", "restart"}[rand.N(6)]; kind {
	case "cut off", "half cut":
		cut := zkembed.Cut{Sessions: []int64{id}}
		if kind == "half cut" {
			cut.Direction = zkembed.ToClient
		}
		p := s.srv.Partition(cut)
		time.Sleep(rand.N(3 * T / 2))
		p.Heal()
		s.struck[kind]++
	case "expired":
		from := time.Now()
		time.Sleep(time.Millisecond) // virtual time stands still otherwise
		if s.srv.ExpireSession(id) == nil {
			s.rec.Break(name, stormPath, kind, from, T)
			s.struck[kind]++
		}
	case "dropped":
		if s.srv.DropConn(id) == nil {
			s.struck[kind]++
		}
	case "lost replies":
		f := s.srv.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpDelete, zkembed.OpGetChildren2}, Session: id, Times: 2,
		}, zkembed.LoseReply())
		time.Sleep(rand.N(T / 2))
		f.Remove()
		s.struck[kind] += f.Fired()
	case "restart":
		s.srv.Restart(rand.N(T / 2))
		s.struck[kind]++
	}
}

// TestNeverMoreThanTheLimitHoldInAStorm judges the recorded history: see
// package history.
func TestNeverMoreThanTheLimitHoldInAStorm(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(dialect.String(), func(t *testing.T) {
			rec := history.New()
			synctest.Test(t, func(t *testing.T) {
				srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(tick), zkembed.WithReaper(0))
				require.NoError(t, err)
				rec = history.New()
				s := &storm{T: t, srv: srv, dialect: dialect, rec: rec, struck: map[string]int{}}
				defer func() { require.NoError(t, srv.Close()) }()
				defer s.end()
				s.blow(15 * time.Minute)
				t.Logf("%d records, struck: %v", rec.Len(), s.struck)
			})
			history.Check(t, rec, history.Leases(stormPath, stormLimit))
		})
	}
}

func (s *storm) blow(d time.Duration) {
	s.Helper()
	for range 5 {
		s.clients = append(s.clients, s.open())
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var working sync.WaitGroup
	for i := range s.clients {
		for range 2 {
			working.Go(func() { s.work(ctx, i) })
		}
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(rand.N(T / 2))
		s.strike()
	}
	require.Len(s, s.struck, 6, "%v", s.struck)
	cancel()
	working.Wait()
	time.Sleep(T + 2*tick) // the calm: whoever died is dead
	sem, err := semaphore.New(s.clients[0], stormPath, stormLimit)
	require.NoError(s, err)
	held, err := sem.TryAcquireN(s.Context(), stormLimit)
	require.NoError(s, err, "every lease is free after the storm: %v", s.srv.Nodes())
	require.NoError(s, held.Release(s.Context()))
}

func (s *storm) end() {
	for _, c := range s.clients {
		require.NoError(s, c.Close(context.Background()))
	}
}
