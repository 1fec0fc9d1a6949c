package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/coord/queue"
)

// producerVerb is one producing process of the queue demo.
type producerVerb struct {
	Name  string
	Items int
	Path  nodePath `arg:""`
}

// Run puts its items and says so.
func (v *producerVerb) Run(s *streams, c *connection) error {
	return atQueue(c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		for i := range v.Items {
			item := fmt.Sprintf("%s-%d", v.Name, i+1)
			if err := q.Put(ctx, []byte(item)); err != nil {
				return err
			}
			fmt.Fprintln(s.out, "put", item)
		}
		return nil
	})
}

// consumerVerb is one consuming process of the queue demo.
type consumerVerb struct {
	Path nodePath `arg:""`
}

// Run receives items until it is killed, says so, works a moment, and acknowledges them.
func (v *consumerVerb) Run(s *streams, c *connection) error {
	return atQueue(c, v.Path, func(ctx context.Context, q *queue.Queue) error {
		for {
			item, err := q.Receive(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintln(s.out, "got", string(item.Data), item.Deliveries)
			time.Sleep(10*time.Millisecond + rand.N(30*time.Millisecond))
			if err := item.Ack(ctx); err != nil {
				s.note("item %s: %v", item.Data, err)
				continue
			}
			fmt.Fprintln(s.out, "acked", string(item.Data))
		}
	})
}

func atQueue(c *connection, path nodePath, f func(ctx context.Context, q *queue.Queue) error) error {
	client, err := c.open(context.Background())
	if err != nil {
		return err
	}
	defer hangUp(client)
	q, err := queue.New(client, string(path))
	if err != nil {
		return failure(err)
	}
	return failure(f(context.Background(), q))
}
