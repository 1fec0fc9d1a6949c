package bench

import (
	"context"
	"testing"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"

	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/interop"
)

// session is a contender's connection to the servers, and what it can do there.
// What it cannot do is nil.
type session struct {
	lock    func(path string) (acquire, error)
	barrier func(path string, n int) (enter, leave call, err error)
	queue   func(path string) (put, receive, error)
	close   func()
	id      func() int64 // of the session with ZooKeeper
}

type (
	call    func(context.Context) error
	acquire func(context.Context) (release call, err error)
	put     func(ctx context.Context, item []byte) error
	// receive returns when there is an item.
	receive func(context.Context) (ack call, err error)
)

// open connects to one server; sessions last for timeout.
type open func(ctx context.Context, addr string, timeout time.Duration) (*session, error)

// contender is something that is measured.
type contender struct {
	name   string
	server string // kind of server that it needs
	open   open   // in Go; else it is a program
	// program returns the command line of a contender in another language.
	program func(t testing.TB) interop.Program
}

// Names that the table of workloads uses.
const (
	zkcoord   = "zkcoord"
	local     = "zkcoord, local queue"
	lingering = "zkcoord, lingering"
	zkLock    = "zk.Lock"
	curator   = "Curator"
	kazoo     = "Kazoo"
	etcd      = "etcd"
	redis     = "Redis (weaker)"
	limit     = "limit"
	pipelined = "limit, pipelined"

	acknowledged = "limit, acknowledged"
	bareBatches  = "limit, batches of 16"
	prefetching  = "zkcoord, prefetch of 15"
	batches      = "zkcoord, batches of 16"
)

// Kinds of servers.
const (
	zooKeeper   = "ZooKeeper"
	etcdServer  = "etcd"
	redisServer = "Redis"
)

var contenders = []contender{
	{name: limit, server: zooKeeper, open: openLimit},
	{name: pipelined, server: zooKeeper, open: openPipelined},
	{name: acknowledged, server: zooKeeper, open: openAcknowledged(1)},
	{name: bareBatches, server: zooKeeper, open: openAcknowledged(batchSize)},
	{name: zkcoord, server: zooKeeper, open: openZkcoord()},
	{name: local, server: zooKeeper, open: openZkcoord(lock.LocalQueue(1000, time.Second))},
	{name: lingering, server: zooKeeper, open: openZkcoord(lock.Linger(time.Second))},
	{name: prefetching, server: zooKeeper, open: openQueue(oneByOne, queue.WithPrefetch(batchSize-1))},
	{name: batches, server: zooKeeper, open: openQueue(byMany)},
	{name: tries, server: zooKeeper, open: openTries},
	{name: zkLock, server: zooKeeper, open: openZkLock},
	{name: curator, server: zooKeeper, program: javaProgram},
	{name: kazoo, server: zooKeeper, program: pythonProgram},
	{name: etcd, server: etcdServer, open: openEtcd},
	{name: redis, server: redisServer, open: openRedis},
}

func contenderNamed(name string) contender {
	for _, c := range contenders {
		if c.name == name {
			return c
		}
	}
	panic("bench: no contender " + name)
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

// pollEvery is how often a client of the Redis lock asks for a lock that
// another has: no waiter is told, and none is first.
const pollEvery = time.Millisecond

// openRedis is a lock of a weaker class: one server, no replication that it
// waits for, no order of waiters, no news of a loss, and a lease that runs out
// by the server's clock whatever its holder does.
func openRedis(_ context.Context, addr string, timeout time.Duration) (*session, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	locks := redislock.New(client)
	lock := func(path string) (acquire, error) {
		return func(ctx context.Context) (call, error) {
			l, err := locks.Obtain(ctx, path, timeout, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)})
			if err != nil {
				return nil, err
			}
			return l.Release, nil
		}, nil
	}
	return &session{lock: lock, close: func() { _ = client.Close() }}, nil
}
