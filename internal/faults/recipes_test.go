package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// Mutex, read/write lock, semaphore and election, while connections flap, the
// server is killed and comes back, and sessions are ended.
func TestF45TheRecipesKeepTheirPromisesUnderAMixOfFaults(t *testing.T) {
	onReal(t, func(s scene) {
		const leases = 2
		rec := history.New()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		s.Cleanup(func() { cancel(); wg.Wait() })
		var clients []*coord.Client
		for i := range 3 {
			c := s.behind()
			clients = append(clients, c)
			who := fmt.Sprint("c", i)
			key := func(name string) string { return s.w.Path(name) }
			m, err := lock.New(c, key("lock"))
			require.NoError(s, err)
			rw, err := rwlock.New(c, key("shared"))
			require.NoError(s, err)
			sem, err := semaphore.New(c, key("semaphore"), leases)
			require.NoError(s, err)
			e, err := election.New(c, key("election"))
			require.NoError(s, err)
			campaign := func(ctx context.Context) (*election.Term, error) { return e.Campaign(ctx, []byte(who)) }
			wg.Go(func() { occupy(ctx, rec, who, key("lock"), history.Exclusive, m.Acquire) })
			wg.Go(func() { occupy(ctx, rec, who+".r", key("shared"), history.Shared, rw.AcquireRead) })
			wg.Go(func() { occupy(ctx, rec, who+".w", key("shared"), history.Exclusive, rw.AcquireWrite) })
			wg.Go(func() { occupy(ctx, rec, who, key("semaphore"), history.Lease, sem.Acquire) })
			wg.Go(func() { occupy(ctx, rec, who, key("election"), history.Exclusive, campaign) })
		}
		random, kinds := s.random(), map[string]int{}
		stop := s.w.Proxy().Flap(50*time.Millisecond, 500*time.Millisecond, random.Uint64())
		for end := time.Now().Add(long(20*time.Second, 6*time.Second)); time.Now().Before(end); {
			if random.IntN(3) == 0 {
				require.NoError(s, s.w.Real().Restart())
				kinds["kill -9"]++
			} else {
				i := random.IntN(len(clients))
				from := time.Now()
				if s.w.Real().ExpireSession(clients[i].SessionID()) == nil {
					kinds["session ended"]++
				}
				rec.Break(fmt.Sprint("c", i), "", "its session was ended", from, T)
			}
			s.waitUntil(time.Now().Add(300*time.Millisecond + time.Duration(random.Int64N(int64(700*time.Millisecond)))))
		}
		kinds["cut"] = stop()
		last := time.Now()
		for _, name := range []string{"lock", "shared", "semaphore", "election"} {
			zktest.Eventually(s, T+2*time.Second, func() bool { return grantedSince(rec, s.w.Path(name), last.Sub(rec.Begin())) }, "%s is stuck", name)
		}
		cancel()
		wg.Wait()
		for kind, n := range kinds {
			require.Positive(s, n, kind)
		}
		s.Logf("%d operations, faults %v", rec.Len(), kinds)
		history.Check(s, rec, history.Mutex(s.w.Path("lock")), history.ReadersWriter(s.w.Path("shared")),
			history.Leases(s.w.Path("semaphore"), leases), history.Election(s.w.Path("election")))
		// All leases are free again.
		free, err := semaphore.New(s.client(), s.w.Path("semaphore"), leases)
		require.NoError(s, err)
		g, err := free.AcquireN(s.Context(), leases)
		require.NoError(s, err)
		require.NoError(s, g.Release(context.Background()))
	})
}

// occupy holds for a moment, again and again.
func occupy[H history.Holder](ctx context.Context, rec *history.Recorder, who, key string, kind history.Kind, acquire func(context.Context) (H, error)) {
	for ctx.Err() == nil {
		g, err := history.Acquire(rec, who, key, kind, func() (H, error) { return acquire(ctx) })
		if err != nil {
			continue
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-g.Hold.Done():
		}
		timer.Stop()
		_ = g.Release(context.Background())
	}
}

func grantedSince(rec *history.Recorder, key string, since time.Duration) bool {
	for _, r := range rec.Records() {
		if r.Key == key && r.Outcome == history.OK && r.Call >= since && r.Kind != history.Release && r.Kind != history.Lost {
			return true
		}
	}
	return false
}

func init() { zktest.RegisterChild("consumer", consumerMain) }

// consumerMain receives one item, prints it, and acknowledges it when it is
// told to.
func consumerMain(args []string) {
	ctx := context.Background()
	c, err := coord.Open(ctx, args[0], coord.WithSessionTimeout(T), coord.WithTick(tick))
	exitOn(err)
	q, err := queue.New(c, args[1])
	exitOn(err)
	item, err := q.Receive(ctx)
	exitOn(err)
	fmt.Println(string(item.Data))
	if in := bufio.NewScanner(os.Stdin); in.Scan() {
		fmt.Println(item.Ack(ctx))
	}
}

func (s scene) queue(c *coord.Client) *queue.Queue {
	s.Helper()
	q, err := queue.New(c, s.w.Path("queue"))
	require.NoError(s, err)
	s.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func TestF45AConsumerIsKilledBetweenReceiveAndAck(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.client())
		require.NoError(s, q.Put(s.Context(), []byte("one")))
		consumer := zktest.Child(s, "consumer", s.w.ConnectString(), s.w.Path("queue"))
		require.Equal(s, "one", consumer.Line(patience))
		consumer.Kill()
		item, err := q.Receive(s.Context())
		require.NoError(s, err)
		require.Equal(s, "one", string(item.Data))
		require.Equal(s, 2, item.Deliveries)
		require.NoError(s, item.Ack(s.Context()))
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		require.Zero(s, n)
	})
}

// A consumer that was taken for dead and comes back does not remove the item of
// another.
func TestF45AConsumerStoppedForTwiceTheTimeoutCannotAck(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.client())
		require.NoError(s, q.Put(s.Context(), []byte("one")))
		consumer := zktest.Child(s, "consumer", s.w.ConnectString(), s.w.Path("queue"))
		require.Equal(s, "one", consumer.Line(patience))
		require.NoError(s, consumer.Stop())
		item, err := q.Receive(s.Context())
		require.NoError(s, err)
		consumer.Send("ack")
		require.NoError(s, consumer.Continue())
		require.Contains(s, consumer.Line(patience), queue.ErrStale.Error())
		require.NoError(s, item.Err())
		require.NoError(s, item.Ack(s.Context()))
	})
}

func TestF45TheReplyToAPutIsLost(t *testing.T) {
	each(t, func(s scene) {
		q := s.queue(s.behind())
		require.NoError(s, q.Put(s.Context(), []byte("first")))
		for _, loss := range []proxy.Action{proxy.CutOnReply, proxy.DropAndCut} {
			lost := s.w.Proxy().Inject(proxy.Fault{On: append([]int32{proxy.OpMulti}, proxy.Creates...), Path: s.w.Path("queue"), Do: loss})
			require.NoError(s, q.Put(s.Context(), []byte("second")))
			require.Equal(s, 1, lost.Fired())
		}
		for _, want := range []string{"first", "second", "second"} {
			data, err := q.Take(s.Context())
			require.NoError(s, err)
			require.Equal(s, want, string(data))
		}
		n, err := q.Len(s.Context())
		require.NoError(s, err)
		require.Zero(s, n, "an item was doubled")
	})
}

// members enter a double barrier for three, and leave it when told.
func TestF45AMemberOfADoubleBarrierDiesBeforeAndAnotherInside(t *testing.T) {
	each(t, func(s scene) {
		const n = 3
		entered := make(chan *doublebarrier.Member, n)
		enter := func(c *coord.Client) {
			b, err := doublebarrier.New(c, s.w.Path("double"), n)
			require.NoError(s, err)
			go func() {
				m, err := b.Enter(context.Background())
				if err != nil {
					s.Errorf("enter: %v", err)
				}
				entered <- m
			}()
		}
		clients := s.clients(n)
		enter(clients[0])
		enter(clients[1])
		nodes := func() int { names, _, _ := s.w.Admin().Children(s.w.Path("double")); return len(names) }
		zktest.Eventually(s, patience, func() bool { return nodes() >= 2 }, "nobody enters")
		s.w.ExpireSession(clients[1].SessionID()) // it comes again
		require.Empty(s, entered)
		enter(clients[2])
		verdicts := make(chan error, n)
		for i := range n {
			m := zktest.Receive(s, patience, entered, "the round does not begin")
			require.NotNil(s, m)
			if i == 0 {
				require.NoError(s, m.Abandon(context.Background()))
				continue
			}
			go func() { verdicts <- m.Leave(context.Background()) }()
		}
		for range n - 1 {
			var incomplete *doublebarrier.IncompleteError
			require.ErrorAs(s, zktest.Receive(s, patience, verdicts, "a member cannot leave"), &incomplete)
			require.Len(s, incomplete.Missing, 1)
		}
	})
}

func TestF45ABarrierIsRemovedWhileAWaiterIsCutOff(t *testing.T) {
	each(t, func(s scene) {
		near, err := barrier.New(s.client(), s.w.Path("barrier"))
		require.NoError(s, err)
		far, err := barrier.New(s.behind(), s.w.Path("barrier"))
		require.NoError(s, err)
		require.NoError(s, near.Set(s.Context()))
		watching := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpGetData, proxy.OpExists}, Path: s.w.Path("barrier"), Do: proxy.WatchReply})
		through := make(chan error, 1)
		go func() { through <- far.Wait(context.Background()) }()
		zktest.Receive(s, patience, watching.First(), "the waiter does not watch")
		s.w.Proxy().Refuse()
		require.Positive(s, s.w.Proxy().CutAll())
		require.NoError(s, near.Remove(s.Context()))
		zktest.Eventually(s, patience, func() bool { return s.w.Proxy().Stats().Refused > 0 }, "the waiter does not connect")
		require.Empty(s, through)
		s.w.Proxy().Heal()
		require.NoError(s, zktest.Receive(s, patience, through, "the waiter is stuck"))
	})
}

func TestF45ARevocationReachesAHolderThatWasCutOff(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.behind())
		s.w.Proxy().Refuse()
		require.Equal(s, 1, s.w.Proxy().CutAll())
		require.NoError(s, coord.Revoke(s.Context(), s.client(), h.Node()))
		s.w.Proxy().Heal()
		zktest.Receive(s, patience, h.Revoked(), "the request does not arrive")
		if err := h.Err(); err != nil {
			require.True(s, errors.Is(err, coord.ErrWindowOver), "%v", err)
		}
		s.release(h)
	})
}
