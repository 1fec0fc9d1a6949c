package faults

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The server accepts half of the default size, and the client has no option
// that says so.
func TestF50APacketThatAServerClosesOnFailsAndOthersAreUnharmed(t *testing.T) {
	const limit = 1 << 19
	onReal(t, func(s scene) {
		for what, try := range map[string]func(scene, *coord.Client, *queue.Queue) error{
			"a claim's data": func(s scene, c *coord.Client, _ *queue.Queue) error {
				_, err := c.Acquire(s.Context(), coord.Spec{
					Line: coord.Line{Dir: s.w.Path("large")}, Kind: "lock", Data: make([]byte, limit),
				}, nil)
				return err
			},
			"a batch of 10,000 items of a byte": func(s scene, _ *coord.Client, q *queue.Queue) error {
				items := make([][]byte, 10_000)
				for i := range items {
					items[i] = []byte("x")
				}
				return q.PutBatch(s.Context(), items)
			},
			"a claim larger than its item": func(s scene, _ *coord.Client, q *queue.Queue) error {
				data := make([]byte, limit-300-len(s.w.Path("q")))
				require.NoError(s, q.Put(s.Context(), data))
				item, err := q.Receive(s.Context())
				require.NoError(s, err)
				require.Len(s, item.Data, len(data))
				require.NoError(s, item.Ack(s.Context()))
				return fmt.Errorf("%w: and was received without being counted", coord.ErrTooLarge)
			},
		} {
			var lost atomic.Int32
			c := s.client(coord.WithObserver(func(e coord.Event) {
				if e.Kind == coord.SessionDown {
					lost.Add(1)
				}
			}))
			q, err := queue.New(c, s.w.Path("q"))
			require.NoError(s, err)
			require.NoError(s, q.Put(s.Context(), []byte("small")))
			item, err := q.Receive(s.Context())
			require.NoError(s, err)
			h := s.acquire(c)
			require.ErrorIs(s, try(s, c, q), coord.ErrTooLarge, what)
			s.Logf("%s: %d connections lost", what, lost.Load())
			require.LessOrEqual(s, lost.Load(), int32(5), what)
			require.NoError(s, item.Ack(s.Context()), what)
			s.release(h)
			require.NoError(s, q.Close(s.Context()))
		}
	}, zktest.WithProperty("jute.maxbuffer", fmt.Sprint(limit)))
}
