package queue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// idle starts n consumers with a client each, that wait for one item. They
// hand it over to got.
func (b bubble) idle(n int, got chan<- *queue.Item) (clients []*coord.Client) {
	for range n {
		c, q := b.quiet()
		clients = append(clients, c)
		go b.receive(q, got)
		synctest.Wait()
	}
	time.Sleep(time.Second)
	return clients
}

// next is the next item that an idle consumer received.
func (b bubble) next(got <-chan *queue.Item) *queue.Item {
	b.Helper()
	return zktest.Receive(b, time.Hour, got, "somebody receives an item")
}

func TestAPutToManyIdleConsumersCostsNoMoreThanToAFew(t *testing.T) {
	costs := map[int]zkembed.Counts{}
	for _, n := range []int{4, 12, 36} {
		inBubble(t, func(b bubble) {
			got := make(chan *queue.Item, n)
			b.idle(n, got)
			producer := b.queue(b.Open())
			put(b, producer, "first") // makes the producer's node
			ack(b, b.next(got))
			time.Sleep(time.Second)
			before := b.Server.Counts()
			put(b, producer, "second")
			ack(b, b.next(got))
			time.Sleep(time.Second)
			costs[n] = b.Server.Counts().Since(before)
			b.Logf("%d idle consumers: %v", n, costs[n])
			for range n - 2 {
				put(b, producer, "more")
				ack(b, b.next(got))
			}
		})
	}
	const probes = 40 // empty writes of all clients in the second in which it settles
	for n, c := range costs {
		require.LessOrEqual(t, c[zkembed.OpNotify], 20, "%d idle: %v", n, c)
		require.LessOrEqual(t, c[zkembed.OpGetChildren2]+c[zkembed.OpGetData], 24, "%d idle: %v", n, c)
		require.LessOrEqual(t, c[zkembed.OpMulti], 3+probes, "%d idle: %v", n, c)
	}
}

func TestWhenTheFirstInLineStandsStillTheSecondServes(t *testing.T) {
	inBubble(t, func(b bubble) {
		got := make(chan *queue.Item, 3)
		clients := b.idle(4, got)
		// The first was alone when it came, and watches without standing in the
		// line. The second is the first in line.
		still := []int64{clients[0].Info().SessionID, clients[1].Info().SessionID}
		line := slices.DeleteFunc(b.Server.Nodes(),
			func(n zkembed.Node) bool { return !strings.HasPrefix(n.Path, "/q/waiting/") })
		require.Len(b, line, 3)
		first := slices.MinFunc(line, func(a, b zkembed.Node) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
		require.Equal(b, still[1], first.Stat.EphemeralOwner)
		cut := b.Server.Partition(zkembed.Cut{Sessions: still})
		defer cut.Heal()
		producer := b.queue(b.Open())
		begun := time.Now()
		put(b, producer, "a")
		ack(b, b.next(got))
		require.Less(b, time.Since(begun), time.Second)
	})
}

// Every request takes a millisecond, to have the consumers really work at the
// same time.
func TestConsumersBesideEachOtherSeldomTryTheSame(t *testing.T) {
	inBubble(t, func(b bubble) {
		// Read, claim and ack.
		beside(b, 3, func(q *queue.Queue) ([]byte, error) {
			item, err := q.TryReceive(b.Context())
			if err != nil {
				return nil, err
			}
			require.Equal(b, 1, item.Deliveries)
			return item.Data, item.Ack(b.Context())
		})
	})
	inBubble(t, func(b bubble) {
		// Read and remove.
		beside(b, 2, func(q *queue.Queue) ([]byte, error) { return q.TryTake(b.Context()) })
	})
}

// beside has four consumers empty a queue, each of them by requests that take
// as many for one item. Half a request more is allowed for listings and failed
// attempts.
func beside(b bubble, requests int, consume func(*queue.Queue) ([]byte, error)) {
	const n, consumers = 2000, 4
	putBatch(b, b.queue(b.Open()), n)
	var all []*queue.Queue
	for range consumers {
		all = append(all, b.queue(b.Open()))
	}
	slow := b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(time.Millisecond))
	defer slow.Remove()
	before, begun := b.Server.Counts(), time.Now()
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for _, q := range all {
		wg.Go(func() {
			for {
				data, err := consume(q)
				if errors.Is(err, queue.ErrEmpty) {
					return
				}
				require.NoError(b, err)
				i, err := strconv.Atoi(string(data))
				require.NoError(b, err)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	counts, took := b.Server.Counts().Since(before), time.Since(begun)
	b.Logf("%v: %.2f requests per item, %.2f ms per item and consumer", counts, float64(counts.Total())/n,
		took.Seconds()*1000*consumers/n)
	require.Len(b, order, n)
	require.LessOrEqual(b, counts.Total(), requests*n+n/2)
	require.Less(b, took, time.Duration(requests)*n/consumers*time.Millisecond, "reading ahead saves a round trip")
	for at, i := range order {
		require.InDelta(b, at, i, max(16*consumers, n/8), "items are received nearly in order")
	}
}

func TestAnUrgentItemIsReceivedNextWhicheverClientPutIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		put(b, q, "1", "2", "3", "4")
		for _, producer := range []*queue.Queue{q, other} {
			item := receive(b, q)
			require.NoError(b, producer.Put(b.Context(), []byte("urgent"), queue.Priority(0)))
			ack(b, item)
			serve(b, q, "urgent")
		}
		ack(b, receive(b, q))
		ack(b, receive(b, q))

		// Also when listing is due no more.
		for range 40 {
			put(b, q, "ordinary")
		}
		for range 20 {
			ack(b, receive(b, q))
		}
		require.NoError(b, q.Put(b.Context(), []byte("urgent"), queue.Priority(0)))
		require.Equal(b, "urgent", string(receive(b, q).Data))
	})
}

func TestAConsumerAloneAndIdleCostsFewRequests(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, producer := b.Open(coord.WithSessionTimeout(40*time.Second)), b.queue(b.Open())
		q := b.queue(c)
		put(b, producer, "0")
		ack(b, receive(b, q))
		go func() {
			for {
				item, err := q.Receive(b.Context())
				if err != nil {
					return
				}
				ack(b, item)
			}
		}()
		put(b, producer, "1")
		synctest.Wait()
		before := b.Server.SessionCounts(c.Info().SessionID)
		const n = 10
		for range n {
			put(b, producer, "2")
			synctest.Wait()
		}
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
		b.Log(counts)
		// A listing after the put and one after the ack; read, claim and ack.
		require.LessOrEqual(b, counts.Total(), 5*n)
	})
}

func TestOfThirtyThousandItemsTheFirstAreReceivedInOrderAndCheaply(t *testing.T) {
	inBubble(t, func(b bubble) {
		const all, batch, some = 30_000, 1_000, 200
		c, q := b.quiet()
		for i := 0; i < all; i += batch {
			require.NoError(b, q.PutBatch(b.Context(), numbered(i, batch)))
		}
		before := b.Server.SessionCounts(c.Info().SessionID)
		for i := range some {
			serve(b, q, fmt.Sprint(i))
		}
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
		b.Log(counts)
		require.LessOrEqual(b, counts[zkembed.OpGetChildren2], 3)
		require.Equal(b, all-some, length(b, q))
		take(b, b.queue(c))
	})
}

// chance is the same in each run of a seed, but for the goroutines' order.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(n)
}

func (c *chance) ms(n int) time.Duration { return time.Duration(c.n(n)) * time.Millisecond }

// restless consumes for a while: it gives up, takes, acknowledges, gives back.
func restless(ctx context.Context, c *chance, q *queue.Queue) {
	for range 2 {
		limited, cancel := context.WithTimeout(ctx, c.ms(30))
		if c.n(3) == 0 {
			_, _ = q.Take(limited)
			cancel()
			continue
		}
		item, err := q.Receive(limited)
		cancel()
		if err != nil {
			time.Sleep(c.ms(5))
			continue
		}
		time.Sleep(c.ms(20))
		switch c.n(4) {
		case 0:
			_ = item.Nack(ctx, 0)
		case 1:
			_ = item.Nack(ctx, c.ms(50))
		default:
			_ = item.Ack(ctx)
		}
	}
}

// disturb makes trouble for one consumer, or none.
func (b bubble) disturb(c *chance, victim *coord.Client) {
	switch c.n(6) {
	case 0, 1:
		_ = b.Server.DropConn(victim.Info().SessionID)
	case 2:
		_ = b.Server.ExpireSession(victim.Info().SessionID)
	case 3:
		for _, node := range b.Server.Nodes() {
			if strings.HasPrefix(node.Path, "/q/taken/") {
				_ = inspect.Break(b.Context(), victim, node.Path)
			}
		}
	}
}

func TestProofAWaitingConsumerGetsWhatTheOthersLeave(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(b bubble) {
			c := &chance{r: rand.New(rand.NewPCG(seed, 0))}
			b.Server.Inject(zkembed.Match{Func: func(r zkembed.Request) bool { return r.Xid%2 == 0 }},
				zkembed.DelayReply(time.Millisecond))
			clients := []*coord.Client{b.Open(), b.Open()}
			objects := []*queue.Queue{b.queue(clients[0]), b.queue(clients[0]), b.queue(clients[1])}
			patient := objects[c.n(len(objects))]
			ctx, stop := context.WithCancel(b.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() {
				for {
					item, err := patient.Receive(ctx)
					if err != nil {
						assert.ErrorIs(b, err, context.Canceled, "seed %d: nobody has stopped this receiver", seed)
						return
					}
					time.Sleep(c.ms(10))
					_ = item.Ack(ctx)
				}
			})
			for range 30 {
				var others sync.WaitGroup
				for _, q := range objects {
					for range c.n(3) {
						others.Go(func() { restless(b.Context(), c, q) })
					}
				}
				putBatch(b, objects[c.n(len(objects))], 1+c.n(4))
				time.Sleep(c.ms(30))
				b.disturb(c, clients[c.n(2)])
				others.Wait()
				time.Sleep(3 * T) // for the delays, and for what is left
				require.Zero(b, length(b, patient), "seed %d: items are left, and a receiver waits: %v", seed, b.Server.Nodes())
			}
			stop()
			waiting.Wait()
		})
	}
}
