package bench

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"
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
