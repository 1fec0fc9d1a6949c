package queue_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const patience = 30 * time.Second

// open returns a client of the world's servers that is closed with the test.
func open(t *testing.T, servers string, opts ...coord.Option) *coord.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opts = append([]coord.Option{coord.WithSessionTimeout(zktest.SessionTimeout), coord.WithTick(zktest.DefaultTick)}, opts...)
	c, err := coord.Open(ctx, servers, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

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

// bubble is a server in virtual time.
type bubble struct {
	*testing.T
	srv *zkembed.Server
}

const T = 30 * time.Second

func inBubble(t *testing.T, f func(b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithReaper(0))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, srv.Close()) })
		f(bubble{t, srv})
	})
}

func (b bubble) open(opts ...coord.Option) *coord.Client {
	b.Helper()
	opts = append([]coord.Option{
		coord.WithSessionTimeout(T),
		coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			return b.srv.Dial(network, addr, time.Until(deadline))
		}),
	}, opts...)
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), opts...)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	return c
}

func (b bubble) queue(c *coord.Client, opts ...queue.Option) *queue.Queue {
	return newQueue(b.T, c, "/q", opts...)
}

func isUnconfirmed(err error) bool { return errors.Is(err, coord.ErrUnconfirmed) }
