package bench

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

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
