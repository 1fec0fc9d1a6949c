package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

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
				}, coord.First)
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

// rewrite sets a node's data of 10 KB again and again. It returns how often
// that has succeeded, and what ends it and tells the first error.
func (s scene) rewrite(c *coord.Client) (written *atomic.Int64, stop func() error) {
	s.Helper()
	path, data := s.w.Path("rewritten"), make([]byte, 10_000)
	require.NoError(s, c.Create(s.Context(), path, data))
	ctx, cancel := context.WithCancel(s.Context())
	written, over := new(atomic.Int64), make(chan error, 1)
	go func() {
		for {
			err := c.Retry(ctx, func(ctx context.Context) error {
				_, err := c.Set(ctx, path, data, -1)
				return err
			})
			if err != nil {
				over <- err
				return
			}
			written.Add(1)
		}
	}()
	return written, func() error {
		cancel()
		return <-over
	}
}

// writes waits until the packets have gone on for a while.
func (s scene) writes(written *atomic.Int64) {
	s.Helper()
	from := written.Load()
	zktest.Eventually(s, patience, func() bool { return written.Load() >= from+10 }, "no packet is acknowledged")
}

func TestF60PacketsGoOnBehindAProxyThatFlaps(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 2 * T // so that the machine may stand still for a moment
		s.w.SetTimeout(timeout)
		written, stop := s.rewrite(s.behind(coord.WithSessionTimeout(timeout)))
		p := s.w.Proxy()
		before := p.Stats().Cut
		calm := p.Flap(50*time.Millisecond, 500*time.Millisecond, s.random().Uint64())
		for p.Stats().Cut-before <= 20 {
			s.writes(written)
		}
		calm()
		s.writes(written)
		require.ErrorIs(s, stop(), context.Canceled)
	})
}

func TestF60PacketsGoOnOverARollingRestart(t *testing.T) {
	onEnsemble(t, func(s scene) {
		const timeout = 5 * T // an election takes about a second
		s.w.SetTimeout(timeout)
		written, stop := s.rewrite(s.client(coord.WithSessionTimeout(timeout)))
		for _, server := range s.w.Ensemble().Servers() {
			s.writes(written)
			require.NoError(s, server.Kill())
			s.writes(written)
			require.NoError(s, server.Restart())
			s.leader()
			s.waitUntil(time.Now().Add(5 * tick)) // see F16
		}
		s.writes(written)
		require.ErrorIs(s, stop(), context.Canceled)
	})
}
