// Package market is the job of "demo queue": several processes put items into a
// queue, others receive them one by one, work for a moment and acknowledge
// them. Some consumers are killed while they have an item, which must come
// back.
package market

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// countWithin bounds the look at what is left in the queue.
const countWithin = 4 * time.Second

// Market is the queue with its producers and consumers.
type Market struct {
	Items     int
	Producers int
	Consumers int
	Kills     int
	Path      string // of the queue
	Client    *coord.Client
	Producer  func(name string, items int) (*exec.Cmd, error) // starts a Worker that produces, on its stdin and stdout
	Consumer  func() (*exec.Cmd, error)                       // one that consumes
	crew.Audience

	crew       *crew.Crew[message]
	put, acked map[string]bool      // items
	victims    map[string]time.Time // when the receiver of an item was killed, until the item is delivered again
	result     Result
}

// Result is the outcome.
type Result struct {
	Put         int `json:"put"`
	Acked       int `json:"acked"` // items removed by an ack
	Redelivered int `json:"redelivered"`
	Left        int `json:"left"` // in the queue
	Kills       int `json:"kills"`
}

// Lost is how many items were put, and are neither done nor in the queue.
func (r Result) Lost() int { return max(0, r.Put-r.Acked-r.Left) }

// Run goes on until every item is done, or ctx ends, which is an error. The
// result is good in any case.
func (m *Market) Run(ctx context.Context) (Result, error) {
	m.crew, m.put, m.acked, m.victims = crew.New[message](), map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	err := m.run(ctx)
	m.crew.Close(m.note)
	m.result.Put, m.result.Acked = len(m.put), len(m.acked)
	return m.result, errors.Join(err, m.count())
}

func (m *Market) run(ctx context.Context) error {
	for n := range m.Producers {
		share := m.Items / m.Producers
		if n < m.Items%m.Producers {
			share++
		}
		if _, err := m.crew.Start(func(id int) (*exec.Cmd, error) { return m.Producer(fmt.Sprintf("p%d", id), share) }); err != nil {
			return err
		}
	}
	for range m.Consumers {
		if err := m.consumer(); err != nil {
			return err
		}
	}
	return m.crew.Until(ctx, func() bool { return len(m.acked) >= m.Items && len(m.victims) == 0 }, m.hear)
}

func (m *Market) consumer() error {
	_, err := m.crew.Start(func(int) (*exec.Cmd, error) { return m.Consumer() })
	return err
}

// hear handles a process's message, or its end. A consumer that has just
// received an item waits until it may go on, or is killed.
func (m *Market) hear(e crew.Event[message]) error {
	if e.Message == nil {
		if err := m.crew.Ended(e); err != nil || e.From.Killed() {
			return err
		}
		return e.Failure()
	}
	m.note(e.Message)
	if e.Message.What != itemGot {
		return nil
	}
	if m.due(e.Message.Item) {
		return m.kill(e.From, e.Message.Item)
	}
	e.From.Say("go on")
	return nil
}

// note counts a process's message.
func (m *Market) note(news *message) {
	switch news.What {
	case itemPut:
		m.put[news.Item] = true
	case itemAcked:
		m.acked[news.Item] = true
		m.Show(len(m.acked), m.Items)
	case itemGot:
		m.deliver(news.Item, news.Delivery)
	}
}

func (m *Market) deliver(item string, delivery int) {
	if delivery < 2 {
		return
	}
	m.result.Redelivered++
	if killed, ok := m.victims[item]; ok {
		later := time.Since(killed).Round(time.Millisecond)
		m.Tell("  ✓ %4d done  item %s came back %v later, to another", len(m.acked), item, later)
		delete(m.victims, item)
	}
}

// due reports whether the next victim's time has come: they are spread over the
// run.
func (m *Market) due(item string) bool {
	kills := m.result.Kills
	return kills < m.Kills && !m.acked[item] && len(m.acked) >= (kills+1)*m.Items/(m.Kills+2)
}

func (m *Market) kill(victim *crew.Member, item string) error {
	victim.Kill()
	m.result.Kills++
	m.victims[item] = time.Now()
	m.Tell("  ✗ %4d done  killed process %d, which had received item %s and not acknowledged it",
		len(m.acked), victim.PID(), item)
	return m.consumer()
}

// count finds what is still in the queue.
func (m *Market) count() error {
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	q, err := queue.New(m.Client, m.Path)
	if err == nil {
		m.result.Left, err = q.Len(ctx)
	}
	return err
}

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
