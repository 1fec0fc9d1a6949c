package bench

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

var everyone = zk.WorldACL(zk.PermAll)

// connect returns a plain client with a session.
func connect(ctx context.Context, addr string, timeout time.Duration) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				go func() { // the library blocks nobody, but fills its buffer
					for range events {
					}
				}()
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		}
	}
}

// openZkLock is go-zookeeper's own lock. It ends no wait with a context, only
// with its connection.
func openZkLock(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	conn, err := connect(ctx, addr, timeout)
	if err != nil {
		return nil, err
	}
	lock := func(path string) (acquire, error) {
		return func(context.Context) (call, error) {
			l := zk.NewLock(conn, path, everyone)
			if err := l.Lock(); err != nil {
				return nil, err
			}
			return func(context.Context) error { return l.Unlock() }, nil
		}, nil
	}
	return &session{lock: lock, close: conn.Close, id: conn.SessionID}, nil
}

// makeDir makes a directory and those above it.
func makeDir(conn *zk.Conn, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if _, err := conn.Create(path[:i], nil, 0, everyone); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

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
