//go:build etcd

package bench

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"
)

// etcd's client brings gRPC, which takes a minute to compile: only what
// measures asks for it.
func init() {
	contenders = append(contenders, contender{name: etcd, server: etcdServer, open: openEtcd})
}

// openEtcd is etcd's package concurrency, and for barrier and queue its
// experimental recipes. Its queue has no acknowledgement, and ends no wait with
// a context.
func openEtcd(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(client, concurrency.WithTTL(int(timeout.Seconds())))
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return &session{
		lock: func(path string) (acquire, error) {
			return func(ctx context.Context) (call, error) {
				m := concurrency.NewMutex(s, path)
				return m.Unlock, m.Lock(ctx)
			}, nil
		},
		barrier: func(path string, n int) (enter, leave call, err error) {
			b := recipe.NewDoubleBarrier(s, path, n)
			return func(context.Context) error { return b.Enter() }, func(context.Context) error { return b.Leave() }, nil
		},
		queue: func(path string) (put, receive, error) {
			q := recipe.NewQueue(client, path)
			put := func(_ context.Context, item []byte) error { return q.Enqueue(string(item)) }
			return put, func(context.Context) (call, error) {
				_, err := q.Dequeue()
				return func(context.Context) error { return nil }, err
			}, nil
		},
		close: func() {
			_ = s.Close()
			_ = client.Close()
		},
	}, nil
}
