package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// BenchmarkQueue is one item of 100 bytes from its put to its ack, with as many
// producers as consumers, each with a session of its own. The server is in the
// same process.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("one by one/consumers=%d", n), func(b *testing.B) {
			market{n: n, batch: 1, consume: one}.trade(b)
		})
		b.Run(fmt.Sprintf("batches of 16/consumers=%d", n), func(b *testing.B) {
			market{n: n, batch: 16, consume: sixteen}.trade(b)
		})
	}
}

func one(ctx context.Context, q *queue.Queue) (int, error) {
	item, err := q.Receive(ctx)
	if err != nil {
		return 0, err
	}
	return 1, item.Ack(ctx)
}

func sixteen(ctx context.Context, q *queue.Queue) (int, error) {
	items, err := q.ReceiveBatch(ctx, 16)
	if err != nil {
		return 0, err
	}
	return len(items), q.AckBatch(ctx, items...)
}

// market is n producers, which put items in batches, and n consumers.
type market struct {
	n, batch int
	consume  func(context.Context, *queue.Queue) (int, error)
}

// trade puts and consumes b.N items.
func (m market) trade(b *testing.B) {
	w := zktest.NewEmbedded(b)
	w.SetTimeout(time.Minute) // no probe comes in between
	var queues []*queue.Queue
	for range 2 * m.n {
		c := coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
		queues = append(queues, newQueue(b, c, w.Path("q")))
	}
	ctx, done := context.WithCancel(b.Context())
	defer done()
	var toPut, acked atomic.Int64
	toPut.Store(int64(b.N))
	before := w.Embedded().Counts()
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for _, q := range queues[:m.n] {
		all.Go(func() {
			for {
				left := toPut.Add(-int64(m.batch)) + int64(m.batch)
				if left <= 0 {
					return
				}
				items := make([][]byte, min(left, int64(m.batch)))
				for i := range items {
					items[i] = make([]byte, 100)
				}
				if err := q.PutBatch(b.Context(), items); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, q := range queues[m.n:] {
		all.Go(func() {
			for ctx.Err() == nil {
				n, err := m.consume(ctx, q)
				if err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				if acked.Add(int64(n)) == int64(b.N) {
					done()
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(w.Embedded().Counts().Since(before).Total())/float64(b.N), "requests/op")
}
