package bench

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// batchSize is how many items go together where a contender's name says so.
const batchSize = 16

// openQueue is a session of this library with a queue only, used by the calls.
func openQueue(calls func(*queue.Queue) (put, receive), opts ...queue.Option) open {
	return func(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
		client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
		if err != nil {
			return nil, err
		}
		return &session{
			queue: func(path string) (put, receive, error) {
				q, err := queue.New(client, path, opts...)
				put, receive := calls(q)
				return put, receive, err
			},
			close: func() { _ = client.Close(context.Background()) },
		}, nil
	}
}

// oneByOne has a request for each put, receive and acknowledgement.
func oneByOne(q *queue.Queue) (put, receive) {
	put := func(ctx context.Context, item []byte) error { return q.Put(ctx, item) }
	return put, func(ctx context.Context) (call, error) {
		item, err := q.Receive(ctx)
		if err != nil {
			return nil, err
		}
		return item.Ack, nil
	}
}

// inBatches puts, receives and acknowledges items by many. The harness counts
// an item of a batch before the batch is acknowledged.
func inBatches(q *queue.Queue) (put, receive) {
	var filling [][]byte
	put := func(ctx context.Context, item []byte) error {
		if filling = append(filling, item); len(filling) < batchSize {
			return nil
		}
		full := filling
		filling = nil
		return q.PutBatch(ctx, full)
	}
	var items []*queue.Item
	var next int
	ack := func(ctx context.Context) error {
		if next < len(items) {
			return nil
		}
		return q.AckBatch(ctx, items...)
	}
	return put, func(ctx context.Context) (_ call, err error) {
		if next == len(items) {
			next = 0
			items, err = q.ReceiveBatch(ctx, batchSize)
		}
		next++
		return ack, err
	}
}
