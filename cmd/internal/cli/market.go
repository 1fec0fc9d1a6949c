package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// What a process at the queue tells of.
const (
	itemPut   = "put"
	itemGot   = "got"
	itemAcked = "acked"
)

// queueNews is what a process at the queue tells.
type queueNews struct {
	What     string `json:"what"`
	Item     string `json:"item"`
	Delivery int    `json:"delivery"` // of got
}

// producerVerb is one producing process of the queue demo.
type producerVerb struct {
	Name  string
	Items int
	Path  nodePath `arg:""`
}

// Run puts its items, says so, and waits for the end of its input.
func (v *producerVerb) Run(s *streams, c *connection) error {
	ctx, cancel := crew.UntilEOF(context.Background(), s.in)
	defer cancel()
	return atQueue(ctx, c, v.Path, func(q *queue.Queue) error {
		for i := range v.Items {
			item := fmt.Sprintf("%s-%d", v.Name, i+1)
			if err := q.Put(ctx, []byte(item)); err != nil {
				return err
			}
			crew.Tell(s.out, queueNews{What: itemPut, Item: item})
		}
		<-ctx.Done()
		return nil
	})
}

// consumerVerb is one consuming process of the queue demo.
type consumerVerb struct {
	Path nodePath `arg:""`
}

// Run receives items until its input ends, says so, works a moment, and acknowledges them. Before that it waits for a
// word from its parent, which kills it instead when its time has come.
func (v *consumerVerb) Run(s *streams, c *connection) error {
	ctx, orders, cancel := crew.Orders(context.Background(), s.in)
	defer cancel()
	return atQueue(ctx, c, v.Path, func(q *queue.Queue) error {
		for {
			item, err := q.Receive(ctx)
			if err != nil {
				return err
			}
			crew.Tell(s.out, queueNews{What: itemGot, Item: string(item.Data), Delivery: item.Deliveries})
			rest(ctx, 10*time.Millisecond+rand.N(30*time.Millisecond))
			select {
			case <-orders:
			case <-ctx.Done():
				return nil
			}
			if err := ack(item); err != nil {
				s.note("item %s: %v", item.Data, err)
				continue
			}
			crew.Tell(s.out, queueNews{What: itemAcked, Item: string(item.Data)})
		}
	})
}

// ack acknowledges an item, also when the demonstration is over: to know for certain is worth some time.
func ack(item *queue.Item) error {
	ctx, cancel := context.WithTimeout(context.Background(), demoSession)
	defer cancel()
	return item.Ack(ctx)
}

// atQueue runs f until ctx ends.
func atQueue(ctx context.Context, c *connection, path nodePath, f func(q *queue.Queue) error) error {
	client, err := c.open(ctx)
	if err == nil {
		defer hangUp(client)
		var q *queue.Queue
		if q, err = queue.New(client, string(path)); err == nil {
			err = f(q)
		}
	}
	if ctx.Err() != nil {
		return nil // the demonstration is over
	}
	return failure(err)
}
