package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	T    = coordtest.T
	tick = coordtest.Tick
)

// storm is a test in virtual time, its clients, and what they did.
type storm struct {
	bubble
	rec     *history.Recorder
	clients []*coord.Client
	struck  map[string]int
}

const stormPath, stormLimit = "/semaphore", 3

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
		hold := rand.N(T / 4)
		if rand.N(10) == 0 {
			hold = rand.N(2 * T) // longer than a window lasts
		}
		select {
		case <-g.Hold.Done():
		case <-time.After(hold):
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
		p := s.Server.Partition(cut)
		time.Sleep(rand.N(3 * T / 2))
		p.Heal()
		s.struck[kind]++
	case "expired":
		from := time.Now()
		time.Sleep(time.Millisecond) // virtual time stands still otherwise
		if s.Server.ExpireSession(id) == nil {
			s.rec.Break(name, stormPath, kind, from, T)
			s.struck[kind]++
		}
	case "dropped":
		if s.Server.DropConn(id) == nil {
			s.struck[kind]++
		}
	case "lost replies":
		f := s.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpDelete, zkembed.OpGetChildren2}, Session: id, Times: 2,
		}, zkembed.LoseReply())
		time.Sleep(rand.N(T / 2))
		f.Remove()
		s.struck[kind] += f.Fired()
	case "restart":
		s.Server.Restart(rand.N(T / 2))
		s.struck[kind]++
	}
}

// TestNeverMoreThanTheLimitHoldInAStorm judges the recorded history: see
// package history.
func TestNeverMoreThanTheLimitHoldInAStorm(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(dialect), func(t *testing.T) {
			rec := history.New()
			inBubble(t, func(b bubble) {
				rec = history.New()
				s := &storm{bubble: b, rec: rec, struck: map[string]int{}}
				s.blow(15*time.Minute, dialect)
				b.Logf("%d records, struck: %v", rec.Len(), s.struck)
			})
			history.Check(t, rec, history.Leases(stormPath, stormLimit))
		})
	}
}

func (s *storm) blow(d time.Duration, dialect coord.Dialect) {
	s.Helper()
	for range 5 {
		s.clients = append(s.clients, s.Open(coord.WithTick(tick), coord.WithDialect(dialect)))
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
	time.Sleep(T + 2*tick) // the calm: all dead sessions have ended
	sem, err := semaphore.New(s.clients[0], stormPath, stormLimit)
	require.NoError(s, err)
	held, err := sem.TryAcquireN(s.Context(), stormLimit)
	require.NoError(s, err, "every lease is free after the storm: %v", s.Server.Nodes())
	require.NoError(s, held.Release(s.Context()))
}
