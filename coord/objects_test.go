package coord_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

type secondly struct{}

func (secondly) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

func TestF77ObjectsThatAreMadeForACallEachCostNoMoreThanOne(t *testing.T) {
	for name, call := range map[string]func(b bubble, c *coord.Client){
		"counter": func(b bubble, c *coord.Client) {
			n, err := counter.New(c, "/r")
			require.NoError(b, err)
			require.NoError(b, coordtest.Err(n.Add(b.Context(), 1)))
		},
		"value": func(b bubble, c *coord.Client) {
			v, err := value.New(c, "/r")
			require.NoError(b, err)
			require.NoError(b, v.Set(b.Context(), []byte("x")))
		},
		"once": func(b bubble, c *coord.Client) {
			o, err := once.New(c, "/r")
			require.NoError(b, err)
			require.NoError(b, coordtest.Err(o.Do(b.Context(), "key", func(context.Context, *once.Run) ([]byte, error) {
				return nil, nil
			})))
			require.NoError(b, o.Forget(b.Context(), "key"))
		},
		"queue": func(b bubble, c *coord.Client) {
			made := func() *queue.Queue {
				q, err := queue.New(c, "/r")
				require.NoError(b, err)
				return q
			}
			received := coordtest.Go(func() error {
				item, err := made().Receive(b.Context())
				if err != nil {
					return err
				}
				return item.Ack(b.Context())
			})
			synctest.Wait() // it waits for an item
			require.NoError(b, made().Put(b.Context(), []byte("x")))
			require.NoError(b, <-received)
		},
		"cron": func(b bubble, c *coord.Client) {
			s, err := cron.New(c, "/r", secondly{}, cron.KeepLast(1))
			require.NoError(b, err)
			slot, err := s.Begin(b.Context())
			require.NoError(b, err)
			require.NoError(b, coordtest.Err(slot.End(b.Context(), nil, nil)))
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c := b.Open()
			for range 100 {
				call(b, c)
			}
			before := inUse()
			for range 1000 {
				call(b, c)
			}
			require.LessOrEqual(b, b.owned(c.Info().SessionID), 3, "a consumer of the queue, a Put and an Ack at the same time")
			require.Less(b, inUse().heap, before.heap+100*1000)
			time.Sleep(2 * T)
			require.Zero(b, b.owned(c.Info().SessionID))
		})
	}
}
