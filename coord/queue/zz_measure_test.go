package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestZZMeasure(t *testing.T) {
	for _, b := range []zktest.Backend{zktest.Embedded, zktest.Real} {
		for _, c := range []struct{ p, c, n int }{{1, 1, 4000}, {4, 4, 8000}} {
			t.Run(fmt.Sprintf("%v-%d-%d", b, c.p, c.c), func(t *testing.T) {
				w := zktest.New(t, b)
				var left atomic.Int64
				left.Store(int64(c.n))
				var wg sync.WaitGroup
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var all []*coord.Client
				for range c.p + c.c {
					all = append(all, open(t, w.ConnectString(), coord.WithSessionTimeout(10*time.Second)))
				}
				begin := time.Now()
				for i := range c.p {
					q := newQueue(t, all[i], w.Path("q"))
					wg.Go(func() {
						for j := range c.n / c.p {
							require.NoError(t, q.Put(ctx, []byte(fmt.Sprintf("%d-%d", i, j))))
						}
					})
				}
				var dup atomic.Int64
				for i := range c.c {
					q := newQueue(t, all[c.p+i], w.Path("q"))
					wg.Go(func() {
						for {
							it, err := q.Receive(ctx)
							if err != nil {
								if ctx.Err() == nil {
									t.Error(err)
								}
								return
							}
							if it.Deliveries > 1 {
								dup.Add(1)
							}
							require.NoError(t, it.Ack(context.Background()))
							if left.Add(-1) == 0 {
								cancel()
							}
						}
					})
				}
				wg.Wait()
				took := time.Since(begin)
				t.Logf("%d items in %v: %.0f/s, redelivered %d", c.n, took, float64(c.n)/took.Seconds(), dup.Load())
				if b == zktest.Embedded {
					t.Log(w.Embedded().Counts(), float64(w.Embedded().Counts().Total())/float64(c.n))
				}
			})
		}
	}
}
