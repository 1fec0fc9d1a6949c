package bench

import (
	"context"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
)

// zkcoordClient is a session of this library.
type zkcoordClient struct {
	client *coord.Client
	opts   []lock.Option

	mu      sync.Mutex
	mutexes map[string]*lock.Mutex // by path: goroutines share one
}

func openZkcoord(opts ...lock.Option) open {
	return func(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
		client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
		if err != nil {
			return nil, err
		}
		c := &zkcoordClient{client: client, opts: opts, mutexes: map[string]*lock.Mutex{}}
		return &session{
			lock: c.lock, barrier: c.barrier, queue: c.queue,
			close: func() { _ = client.Close(context.Background()) },
			id:    client.SessionID,
		}, nil
	}
}

func (c *zkcoordClient) lock(path string) (_ acquire, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mutexes[path]
	if m == nil {
		m, err = lock.New(c.client, path, c.opts...)
		c.mutexes[path] = m
	}
	return func(ctx context.Context) (call, error) {
		h, err := m.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}, err
}

func (c *zkcoordClient) barrier(path string, n int) (enter, leave call, err error) {
	b, err := doublebarrier.New(c.client, path, n)
	var m *doublebarrier.Member
	enter = func(ctx context.Context) (err error) {
		m, err = b.Enter(ctx)
		return err
	}
	return enter, func(ctx context.Context) error { return m.Leave(ctx) }, err
}

func (c *zkcoordClient) queue(path string) (put, receive, error) {
	q, err := queue.New(c.client, path)
	put, receive := oneByOne(q)
	return put, receive, err
}

// openTries is TryAcquire in the place of Acquire.
func openTries(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	client, err := coord.Open(ctx, addr, coord.WithSessionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	lock := func(path string) (acquire, error) {
		m, err := lock.New(client, path)
		return func(ctx context.Context) (call, error) {
			h, err := m.TryAcquire(ctx)
			if err != nil {
				return nil, err
			}
			return h.Release, nil
		}, err
	}
	return &session{lock: lock, close: func() { _ = client.Close(context.Background()) }}, nil
}
