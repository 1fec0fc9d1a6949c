package market

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// ackWithin bounds an acknowledgement.
const ackWithin = 4 * time.Second

// What a process at the queue reports.
const (
	itemPut   = "put"
	itemGot   = "got"
	itemAcked = "acked"
)

// message is what a process at the queue reports to its parent.
type message struct {
	What     string `json:"what"`
	Item     string `json:"item"`
	Delivery int    `json:"delivery"` // of got
}

// Worker is one process at the queue.
type Worker struct {
	Queue *queue.Queue
	In    io.Reader                        // at its end the worker ends
	Out   io.Writer                        // to the parent
	Note  func(format string, args ...any) // reports to people what went wrong
}

// Produce puts so many items, says so, and waits for the end of In.
func (w *Worker) Produce(ctx context.Context, name string, items int) error {
	ctx, cancel := crew.UntilEOF(ctx, w.In)
	defer cancel()
	for i := range items {
		item := fmt.Sprintf("%s-%d", name, i+1)
		if err := w.Queue.Put(ctx, []byte(item)); err != nil {
			return unlessOver(ctx, err)
		}
		crew.Tell(w.Out, message{What: itemPut, Item: item})
	}
	<-ctx.Done()
	return nil
}

// Consume receives items until In ends, says so, works a moment, and
// acknowledges them. Before that it waits for a word from its parent, which
// kills it instead when its time has come.
func (w *Worker) Consume(ctx context.Context) error {
	ctx, orders, cancel := crew.Orders(ctx, w.In)
	defer cancel()
	for {
		item, err := w.Queue.Receive(ctx)
		if err != nil {
			return unlessOver(ctx, err)
		}
		crew.Tell(w.Out, message{What: itemGot, Item: string(item.Data), Delivery: item.Deliveries})
		crew.Rest(ctx, 10*time.Millisecond+rand.N(30*time.Millisecond))
		select {
		case <-orders:
		case <-ctx.Done():
			return nil
		}
		if err := ack(item); err != nil {
			w.Note("item %s: %v", item.Data, err)
			continue
		}
		crew.Tell(w.Out, message{What: itemAcked, Item: string(item.Data)})
	}
}

// unlessOver returns nil when the demonstration is over, else err.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// ack acknowledges an item, also when the demonstration is over: it waits some
// time for the outcome.
func ack(item *queue.Item) error {
	ctx, cancel := context.WithTimeout(context.Background(), ackWithin)
	defer cancel()
	return item.Ack(ctx)
}
