package coord

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Use lends the client library's connection to f, for what this package does
// not offer. f must neither close nor keep it: another session is another
// connection. What f creates is bound to the session, as with any client.
// Watches set by f fire once when the connection is lost, with
// zk.StateDisconnected: look again. f runs in a goroutine of its own; its panic
// becomes one of the caller's. When ctx ends, Use returns and f goes on alone.
func (c *Client) Use(ctx context.Context, f func(*zk.Conn) error) error {
	s, err := c.keeper.Session(ctx)
	if err != nil {
		return c.Failure("use", "", err)
	}
	var panicked any
	var left atomic.Bool // the caller, or the panic to it
	_, err = session.Call(ctx, s, func(conn *zk.Conn) (struct{}, error) {
		defer c.lend()()
		defer func() {
			panicked = recover()
			if panicked != nil && !left.CompareAndSwap(false, true) {
				panic(panicked) // the caller has left
			}
		}()
		return struct{}{}, f(conn)
	})
	if !left.CompareAndSwap(false, true) {
		panic(panicked)
	}
	return err
}

// lend notes that a function of a caller of [Client.Use] runs in this
// goroutine, until the function that it returns is called.
func (c *Client) lend() (end func()) {
	id := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent[id] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.lent, id)
	}
}

func (c *Client) isLent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lent) == 0 {
		return false
	}
	_, lent := c.lent[goroutine()]
	return lent
}

// goroutine names the calling goroutine as a stack trace does: "goroutine 7".
func goroutine() string {
	var trace [64]byte
	name, _, _ := bytes.Cut(trace[:runtime.Stack(trace[:], false)], []byte(" ["))
	return string(name)
}
