package bench

import (
	"context"
	"errors"
	"io"
	"log"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-zookeeper/zk"
	goredis "github.com/redis/go-redis/v9"

	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/interop"
)

var everyone = zk.WorldACL(zk.PermAll)

// connect returns a plain client with a session.
func connect(ctx context.Context, addr string, timeout time.Duration) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(log.New(io.Discard, "", 0)),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				go func() { // the library blocks no caller, but fills its buffer
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

// plain opens plain clients, whose use is another's.
func plain(use func(*zk.Conn) session) open {
	return func(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
		conn, err := connect(ctx, addr, timeout)
		if err != nil {
			return nil, err
		}
		s := use(conn)
		s.conn, s.close, s.id = conn, conn.Close, conn.SessionID
		return &s, nil
	}
}

// useZkLock is go-zookeeper's own lock. It ends no wait with a context, only
// with its connection.
func useZkLock(conn *zk.Conn) session {
	return session{lock: func(path string) (acquire, error) {
		return func(context.Context) (call, error) {
			l := zk.NewLock(conn, path, everyone)
			if err := l.Lock(); err != nil {
				return nil, err
			}
			return func(context.Context) error { return l.Unlock() }, nil
		}, nil
	}}
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

// session is a contender's connection to the servers, and what it can do there.
// What it cannot do is nil.
type session struct {
	lock    func(path string) (acquire, error)
	barrier func(path string, n int) (enter, leave call, err error)
	queue   func(path string) (put, receive, error)
	close   func()
	id      func() int64 // of the session with ZooKeeper
	conn    *zk.Conn     // of a plain client
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
	batches      = "zkcoord, batches of 16"
)

// Kinds of servers.
const (
	zooKeeper   = "ZooKeeper"
	etcdServer  = "etcd"
	redisServer = "Redis"
)

var contenders = []contender{
	{name: limit, server: zooKeeper, open: plain(useBare)},
	{name: pipelined, server: zooKeeper, open: plain(usePipelined)},
	{name: acknowledged, server: zooKeeper, open: plain(useAcknowledged(1))},
	{name: bareBatches, server: zooKeeper, open: plain(useAcknowledged(batchSize))},
	{name: zkcoord, server: zooKeeper, open: usage{}.open},
	{name: local, server: zooKeeper, open: usage{locks: []lock.Option{lock.LocalQueue(1000, time.Second)}}.open},
	{name: lingering, server: zooKeeper, open: usage{locks: []lock.Option{lock.Linger(time.Second)}}.open},
	{name: batches, server: zooKeeper, open: usage{calls: byMany}.open},
	{name: zkLock, server: zooKeeper, open: plain(useZkLock)},
	{name: curator, server: zooKeeper, program: javaProgram},
	{name: kazoo, server: zooKeeper, program: pythonProgram},
	{name: redis, server: redisServer, open: openRedis},
}

func contenderNamed(name string) contender {
	for _, c := range contenders {
		if c.name == name {
			return c
		}
	}
	panic("bench: no contender " + name + "; etcd is one with -tags etcd, as in make bench")
}

// pollEvery is how often a client of the Redis lock asks for a lock that
// another has: no waiter is notified, and none is first.
const pollEvery = time.Millisecond

// openRedis is a lock of a weaker class: one server, no replication that it
// waits for, no order of waiters, no news of a loss, and a lease that runs out
// by the server's clock, regardless of its holder.
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
