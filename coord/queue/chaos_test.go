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
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Four producers and four consumers, whose sessions expire, whose connections
// break, whose requests and replies get lost, and who do not always finish what
// they received.
func TestUnderFaultsEverythingPutIsAcknowledgedAndNothingIsInvented(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(b bubble) { chaos(b, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

const itemsEach = 60

func chaos(b bubble, random *rand.Rand) {
	rec := history.New()
	var clients []*coord.Client
	var producing, consuming sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	var acked, redelivered atomic.Int64
	for n := range 4 {
		c := b.Open()
		clients = append(clients, c)
		q := b.queue(c)
		producing.Go(func() { produce(b, rec, q, n) })
	}
	for n := range 4 {
		c := b.Open()
		clients = append(clients, c)
		q, seed := b.queue(c), random.Uint64()
		consuming.Go(func() { consume(ctx, b, rec, q, n, seed, &acked, &redelivered) })
	}
	quiet := make(chan struct{})
	var troubles sync.WaitGroup
	troubles.Go(func() { trouble(b, rec, clients, random, quiet) })
	producing.Wait()
	close(quiet)
	troubles.Wait()
	last := b.queue(b.Open())
	for {
		n, err := last.Len(b.Context())
		require.NoError(b, err)
		if n == 0 {
			break
		}
		time.Sleep(time.Second)
	}
	stop()
	consuming.Wait()
	b.Logf("%d acknowledged, %d of them delivered again", acked.Load(), redelivered.Load())
	require.Positive(b, redelivered.Load(), "nobody died with an item in hand")
	history.Check(b, rec, history.Queue("/q", true))
}

// produce puts its items; one whose outcome stays unknown is not put again.
func produce(b bubble, rec *history.Recorder, q *queue.Queue, n int) {
	for i := range itemsEach {
		item := fmt.Sprintf("%d-%d", n, i)
		op := rec.Call(fmt.Sprint("producer ", n), "/q", history.Put, history.Item(item))
		err := q.Put(b.Context(), []byte(item))
		switch {
		case err == nil:
			op.End(history.OK, nil)
		case errors.Is(err, coord.ErrUnconfirmed):
			op.End(history.Unknown, err)
		default:
			op.End(history.Failed, err)
			b.Errorf("put: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func consume(ctx context.Context, b bubble, rec *history.Recorder, q *queue.Queue, n int, seed uint64, acked, redelivered *atomic.Int64) {
	random := rand.New(rand.NewPCG(seed, 1))
	name := fmt.Sprint("consumer ", n)
	for ctx.Err() == nil {
		var item *queue.Item
		op := rec.Call(name, "/q", history.Receive)
		item, err := q.Receive(ctx)
		if err != nil {
			op.End(history.Failed, err)
			if ctx.Err() == nil {
				b.Errorf("receive: %v", err)
			}
			continue
		}
		op.End(history.OK, nil, history.Item(string(item.Data)))
		if item.Deliveries > 1 {
			redelivered.Add(1)
		}
		select {
		case <-time.After(time.Duration(random.IntN(1000)) * time.Millisecond):
		case <-item.Done():
			op.Lost(time.Now(), item.Err())
		}
		if random.IntN(10) == 0 {
			givenBack := time.Now()
			_ = item.Nack(context.Background(), time.Duration(random.IntN(3))*time.Second)
			op.Lost(givenBack, errors.New("given back"))
			continue
		}
		ack := rec.Call(name, "/q", history.Ack, history.Of(op))
		switch err := item.Ack(context.Background()); {
		case err == nil:
			acked.Add(1)
			ack.End(history.OK, nil)
		case errors.Is(err, queue.ErrStale):
			ack.End(history.Failed, err)
		default:
			ack.End(history.Unknown, err)
		}
	}
}

func trouble(b bubble, rec *history.Recorder, clients []*coord.Client, random *rand.Rand, quiet <-chan struct{}) {
	multi := zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti, zkembed.OpDelete}, Times: 1}
	for {
		select {
		case <-quiet:
			return
		case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
		}
		n := random.IntN(len(clients))
		victim := clients[n].SessionID()
		multi.Session = victim
		switch random.IntN(5) {
		case 0:
			from := time.Now()
			_ = b.Server.ExpireSession(victim)
			rec.Break(fmt.Sprint("consumer ", n-4), "/q", "its session was killed", from, 50*time.Millisecond)
		case 1:
			_ = b.Server.DropConn(victim)
		case 2:
			b.Server.Inject(multi, zkembed.LoseReply())
		case 3:
			b.Server.Inject(multi, zkembed.Drop())
		case 4:
			cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{victim}})
			time.Sleep(time.Duration(random.IntN(int(2 * T))))
			cut.Heal()
		}
	}
}
