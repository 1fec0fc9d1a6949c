package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

const leases, party = 2, 3

// mixed are the recipes of the mix; nil stands for trade in a queue.
var mixed = []struct {
	name string
	use  workload.Use
}{
	{"lock", workload.Lock},
	{"crowd", (&workload.Crowd{Opts: []lock.Option{lock.LocalQueue(3, time.Second), lock.Linger(T / 10)}}).Lock},
	{"shared", workload.Share(0.5)},
	{"semaphore", workload.Lease(leases)},
	{"election", workload.Campaign},
	{"double", workload.Meet(party)},
	{"queue", nil},
}

// judging are the checks of the mix.
type judging struct {
	workload.Unchecked
	s scene
}

func (j judging) Violated(format string, args ...any) { j.s.Errorf(format, args...) }

// All recipes, while connections flap, the server is killed and comes back, and
// sessions are ended.
func TestF45TheRecipesKeepTheirPromisesUnderAMixOfFaults(t *testing.T) {
	onReal(t, func(s scene) {
		ctx, cancel := context.WithCancel(context.Background())
		random, calm := s.random(), make(chan struct{})
		rec, shop := history.New(), &workload.Shop{Full: 60, Takes: 0.3}
		var working sync.WaitGroup
		s.Cleanup(func() { cancel(); working.Wait() })
		var clients []*coord.Client
		var workers []*workload.Worker
		worker := func(c *coord.Client, client, name string) *workload.Worker {
			site := &workload.Site{
				Name: client, Rec: rec, Client: func(context.Context) *coord.Client { return c }, Calm: calm, Checks: judging{s: s},
				Pace: workload.Pace{
					Timeout: T, Patience: patience, Certain: 2 * patience, Step: 5 * time.Millisecond, Pause: time.Millisecond,
					Hold: workload.Between(0, 40*time.Millisecond),
				},
			}
			return workload.NewWorker(site, name, name, s.w.Path(name), rand.New(rand.NewPCG(random.Uint64(), 0)), nil)
		}
		for i := range party {
			c := s.behind()
			clients = append(clients, c)
			for _, part := range mixed {
				use := part.use
				if use == nil {
					use = shop.Trade
				}
				w := worker(c, fmt.Sprint("c", i), part.name)
				workers = append(workers, w)
				working.Go(func() { w.Work(ctx, use) })
			}
		}
		trouble(s, rec, clients, random, long(20*time.Second, 6*time.Second))
		close(calm)
		calmed := time.Now()
		for _, w := range workers {
			zktest.Receive(s, patience, w.Served(), "%s is stuck", w.Name)
		}
		s.onTime("served", calmed, progress, time.Now())
		cancel()
		working.Wait()
		require.NoError(s, shop.Drain(s.Context(), worker(clients[0], "drain", "queue"), clients[0]))
		require.NoError(s, shop.Close(s.Context()))
		s.Logf("%d operations", rec.Len())
		history.Check(s, rec, history.Mutex(s.w.Path("lock")), history.Turns(s.w.Path("crowd")), history.ReadersWriter(s.w.Path("shared")),
			history.Leases(s.w.Path("semaphore"), leases), history.Election(s.w.Path("election")),
			history.Queue(s.w.Path("queue"), true), history.Rounds(s.w.Path("double"), party))
		// All leases are free again.
		free, err := semaphore.New(clients[0], s.w.Path("semaphore"), leases)
		require.NoError(s, err)
		g, err := free.AcquireN(s.Context(), leases)
		require.NoError(s, err)
		require.NoError(s, g.Release(context.Background()))
		require.Empty(s, s.drained(progress, s.ephemerals), "ephemeral nodes are left")
		// The watches of a semaphore's limit and a barrier's state last as long
		// as their clients, one of each.
		for _, c := range clients {
			require.NoError(s, c.Close(context.Background()))
		}
	})
}

// trouble makes the faults, for some time.
func trouble(s scene, rec *history.Recorder, clients []*coord.Client, random *rand.Rand, lasts time.Duration) {
	kinds := map[string]int{}
	server, flapping := s.w.Real(), s.w.Proxy().Flap(50*time.Millisecond, 500*time.Millisecond, random.Uint64())
	end := time.Now().Add(lasts)
	for n := 0; n < 2 || time.Now().Before(end); n++ {
		if n == 0 || n > 1 && random.IntN(2) == 0 {
			rec.Note("kill -9")
			require.NoError(s, server.Restart())
			kinds["kill -9"]++
		} else {
			i, from := random.IntN(len(clients)), time.Now()
			if server.ExpireSession(clients[i].SessionID()) == nil {
				kinds["session ended"]++
			}
			rec.Break(fmt.Sprintf("c%d.", i), "", "its session was ended", from, T)
		}
		s.wait(300*time.Millisecond+time.Duration(random.Int64N(int64(700*time.Millisecond))), time.Now())
	}
	kinds["cut"] = flapping()
	for _, kind := range []string{"kill -9", "session ended", "cut"} {
		require.Positive(s, kinds[kind], kind)
	}
	s.Logf("faults %v", kinds)
}
