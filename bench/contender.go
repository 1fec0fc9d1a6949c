package bench

import (
	"context"
	"testing"
	"time"

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
