package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

const queueWait = 30 * time.Second

// kazooQueue is a Python program that uses a LockingQueue.
type kazooQueue struct{ *zktest.ChildProcess }

func startKazooQueue(t *testing.T, w *zktest.World) kazooQueue {
	t.Helper()
	p := kazooQueue{python(t, "queue_worker.py").Start(t, w.ConnectString(), w.Path("queue"), "2")}
	require.Equal(t, "ready", p.Line(queueWait))
	return p
}

func (k kazooQueue) ask(format string, args ...any) string {
	k.Send(fmt.Sprintf(format, args...))
	return k.Line(queueWait)
}

// goQueue is this module's queue on the same path.
func goQueue(t *testing.T, w *zktest.World) *queue.Queue {
	t.Helper()
	q, err := queue.New(coordtest.Open(t, w.ConnectString()), w.Path("queue"))
	require.NoError(t, err)
	return q
}

func receiveIn(t *testing.T, q *queue.Queue, limit time.Duration) (*queue.Item, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return q.Receive(ctx)
}

func TestGoAndPythonShareAQueue(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		for i := range 20 {
			require.NoError(t, q.Put(t.Context(), fmt.Appendf(nil, "go-%d", i)))
			require.Equal(t, "put", k.ask("put python-%d", i))
		}
		require.Equal(t, "put", k.ask("put urgent 5"))
		require.Equal(t, "41", k.ask("len"))
		first, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.Equal(t, "urgent", string(first.Data))
		require.Equal(t, "got go-0", k.ask("get"), "Python does not get what Go has")
		second, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.NotEqual(t, "go-0", string(second.Data), "Go does not get what Python has")
		require.Equal(t, "True", k.ask("consume"))
		require.NoError(t, second.Ack(t.Context()))
		require.NoError(t, first.Ack(t.Context()))

		all := map[string]int{"urgent": 1, "go-0": 1, string(second.Data): 1}
		answered := make(chan string, 1)
		k.Send("drain 19")
		go func() { answered <- k.Line(queueWait) }()
		for range 19 {
			item, err := receiveIn(t, q, queueWait)
			require.NoError(t, err)
			all[string(item.Data)]++
			require.NoError(t, item.Ack(t.Context()))
		}
		for _, text := range strings.Fields(zktest.Receive(t, queueWait, answered, "Python does not answer"))[1:] {
			all[text]++
		}
		require.Len(t, all, 41)
		for item, times := range all {
			require.Equal(t, 1, times, item)
		}
		require.Equal(t, "0", k.ask("len"))
		k.Send("quit")
		require.Zero(t, k.ExitCode(queueWait))
	})
}

func TestAnItemOfAPythonConsumerThatDiedComesToGoAndBack(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		require.NoError(t, q.Put(t.Context(), []byte("item")))
		require.Equal(t, "got item", k.ask("get"))
		require.ErrorIs(t, coordtest.Err(receiveIn(t, q, 100*time.Millisecond)), context.DeadlineExceeded)
		k.Kill()
		item, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.Equal(t, "item", string(item.Data))

		k = startKazooQueue(t, w)
		require.NoError(t, item.Nack(t.Context(), 0))
		require.Equal(t, "got item", k.ask("get"))
		require.ErrorIs(t, item.Ack(t.Context()), queue.ErrStale)
		require.Equal(t, "True", k.ask("release"))
		item, err = receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.NoError(t, item.Ack(t.Context()))
		k.Send("quit")
		require.Zero(t, k.ExitCode(queueWait))
	})
}
