package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const patience = 30 * time.Second

func newQueue(t *testing.T, c *coord.Client, path string, opts ...queue.Option) *queue.Queue {
	t.Helper()
	q, err := queue.New(c, path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func put(t *testing.T, q *queue.Queue, items ...string) {
	t.Helper()
	for _, item := range items {
		require.NoError(t, q.Put(t.Context(), []byte(item)))
	}
}

func receive(t *testing.T, q *queue.Queue) *queue.Item {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	item, err := q.Receive(ctx)
	require.NoError(t, err)
	return item
}

func ack(t *testing.T, item *queue.Item) {
	t.Helper()
	require.NoError(t, item.Ack(context.Background()))
}

func length(t *testing.T, q *queue.Queue) int {
	t.Helper()
	n, err := q.Len(t.Context())
	require.NoError(t, err)
	return n
}

func (b bubble) queue(c *coord.Client, opts ...queue.Option) *queue.Queue {
	return newQueue(b.T, c, "/q", opts...)
}

// receive hands the next item over, or nothing when the test ends.
func (b bubble) receive(q *queue.Queue, got chan<- *queue.Item) {
	if item, err := q.Receive(b.Context()); err == nil {
		got <- item
	}
}

const T = coordtest.T

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

func isUnconfirmed(err error) bool { return errors.Is(err, coord.ErrUnconfirmed) }
