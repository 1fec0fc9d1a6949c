package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// On a real ensemble, whose leader is killed and whose sessions end while four
// produce and four consume.
func TestOnAnEnsembleThatLosesItsLeaderNothingIsLost(t *testing.T) {
	w := zktest.NewPrivate(t, zktest.Ensemble)
	const each = 150
	rec, path := history.New(), w.Path("q")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var producing, consuming sync.WaitGroup
	var put, settled atomic.Int64
	var consumers []*coord.Client
	for n := range 4 {
		q := newQueue(t, coordtest.Open(t, w.ConnectString()), path)
		producing.Go(func() {
			for i := range each {
				item := fmt.Sprintf("%d-%d", n, i)
				op := rec.Call(fmt.Sprint("producer ", n), path, history.Put, history.Item(item))
				err := q.Put(ctx, []byte(item))
				switch {
				case err == nil:
					op.End(history.OK, nil)
				case errors.Is(err, coord.ErrUnconfirmed):
					op.End(history.Unknown, err)
				default:
					op.End(history.Failed, err)
				}
				put.Add(1)
			}
		})
		c := coordtest.Open(t, w.ConnectString())
		consumers = append(consumers, c)
		mine := newQueue(t, c, path)
		consuming.Go(func() { receiveAll(ctx, rec, mine, fmt.Sprint("consumer ", n), path, &settled) })
	}
	zktest.Eventually(t, patience, func() bool { return settled.Load() > 50 }, "items are consumed")
	leader, err := w.Ensemble().Leader()
	require.NoError(t, err)
	require.NoError(t, leader.Kill())
	require.Less(t, put.Load(), int64(4*each), "the leader is killed in the middle")
	soFar := settled.Load()
	zktest.Eventually(t, time.Minute, func() bool { return settled.Load() > soFar || put.Load() == 4*each }, "it goes on without the old leader")
	require.NoError(t, leader.Restart())
	for n, c := range consumers[:2] {
		from := time.Now()
		id := c.SessionID()
		if id != 0 && w.Ensemble().ExpireSession(id) == nil {
			rec.Break(fmt.Sprint("consumer ", n), path, "its session was killed", from, time.Second)
		}
	}
	producing.Wait()
	last := newQueue(t, coordtest.Open(t, w.ConnectString()), path)
	zktest.Eventually(t, time.Minute, func() bool { return length(t, last) == 0 }, "the queue is emptied")
	stop()
	consuming.Wait()
	history.Check(t, rec, history.Queue(path, true))
}

func receiveAll(ctx context.Context, rec *history.Recorder, q *queue.Queue, name, path string, settled *atomic.Int64) {
	for ctx.Err() == nil {
		op := rec.Call(name, path, history.Receive)
		item, err := q.Receive(ctx)
		if err != nil {
			op.End(history.Failed, err)
			continue
		}
		op.End(history.OK, nil, history.Item(string(item.Data)))
		select {
		case <-time.After(rand.N(5 * time.Millisecond)):
		case <-item.Done():
			op.Lost(time.Time{}, item.Err())
		}
		ack := rec.Call(name, path, history.Ack, history.Of(op))
		switch err := item.Ack(context.Background()); {
		case err == nil:
			ack.End(history.OK, nil)
			settled.Add(1)
		case errors.Is(err, queue.ErrStale):
			op.Lost(time.Time{}, item.Err())
			ack.End(history.Failed, err)
		default:
			ack.End(history.Unknown, err)
		}
	}
}
