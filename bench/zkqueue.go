package bench

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

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

// byMany puts, receives and acknowledges items in batches.
func byMany(q *queue.Queue) (put, receive) {
	put := func(ctx context.Context, items [][]byte) error { return q.PutBatch(ctx, items) }
	return inBatches(batchSize, put, func(ctx context.Context) (int, call, error) {
		items, err := q.ReceiveBatch(ctx, batchSize)
		return len(items), func(ctx context.Context) error { return q.AckBatch(ctx, items...) }, err
	})
}
