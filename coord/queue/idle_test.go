package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/zkembed"
)

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
		_ = b.Server.DropConn(victim.SessionID())
	case 2:
		_ = b.Server.ExpireSession(victim.SessionID())
	case 3:
		for _, node := range b.Server.Nodes() {
			if strings.HasPrefix(node.Path, "/q/taken/") {
				_ = inspect.Break(b.Context(), victim, node.Path)
			}
		}
	}
}

func TestAWaitingConsumerGetsWhatTheOthersLeave(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(b bubble) {
			c := &chance{r: rand.New(rand.NewPCG(seed, 0))}
			b.Server.Inject(zkembed.Match{Func: func(r zkembed.Request) bool { return r.Xid%2 == 0 }}, zkembed.DelayReply(time.Millisecond))
			clients := []*coord.Client{b.Open(), b.Open()}
			objects := []*queue.Queue{b.queue(clients[0]), b.queue(clients[0]), b.queue(clients[1])}
			patient := objects[c.n(len(objects))]
			ctx, stop := context.WithCancel(b.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() {
				for {
					item, err := patient.Receive(ctx)
					if err != nil {
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
				batch := make([][]byte, 1+c.n(4))
				for i := range batch {
					batch[i] = fmt.Append(nil, i)
				}
				require.NoError(b, objects[c.n(len(objects))].PutBatch(b.Context(), batch))
				time.Sleep(c.ms(30))
				b.disturb(c, clients[c.n(2)])
				others.Wait()
				time.Sleep(3 * T) // for the delays, and for what is left
				n, err := patient.Len(b.Context())
				require.NoError(b, err)
				require.Zero(b, n, "seed %d: items are left, and a receiver waits", seed)
			}
			stop()
			waiting.Wait()
		})
	}
}
