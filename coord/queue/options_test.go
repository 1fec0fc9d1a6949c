package queue_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestF70ConsumersWithDifferentOptionsOfOneQueueReportThatOnce(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var mu sync.Mutex
		told := map[string][]string{}
		reported := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			return len(told[name])
		}
		consume := func(name string, opts ...queue.Option) {
			c := coordtest.Open(t, w.ConnectString(), coord.WithObserver(func(e event.Event) {
				if e.Kind == event.Differs {
					mu.Lock()
					defer mu.Unlock()
					told[name] = append(told[name], e.Path+": "+e.Err.Error())
				}
			}))
			q, err := queue.New(c, w.Path("q"), opts...)
			require.NoError(t, err)
			t.Cleanup(func() { _ = q.Close(coordtest.Limited(t)) })
			go func() {
				for {
					item, err := q.Receive(t.Context())
					if err != nil {
						return
					}
					_ = item.Ack(t.Context())
				}
			}()
		}
		consume("one", queue.DeadLetters(5))
		consume("same", queue.DeadLetters(5))
		q, err := queue.New(coordtest.Open(t, w.ConnectString()), w.Path("q"))
		require.NoError(t, err)
		zktest.Eventually(t, coordtest.Soon, func() bool {
			all, err := q.Consumers(t.Context())
			return err == nil && len(all) == 2
		}, "two consumers")
		consume("other")
		for _, name := range []string{"one", "same", "other"} {
			zktest.Eventually(t, coordtest.Soon, func() bool {
				require.NoError(t, q.Put(t.Context(), []byte("item"))) // those who wait only count when there is something
				return reported(name) > 0
			}, "%s reports it", name)
		}
		for _, name := range []string{"one", "same", "other"} {
			require.Equal(t, 1, reported(name), name)
		}
		require.Contains(t, told["other"][0],
			w.Path("q")+
				": another consumer of this queue has other options (dead-after-5,backoff-1s) than this one (never-dead,backoff-1s)")
	})
}
