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
	var l loan
	_, err = session.Call(ctx, s, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, l.run(func() error {
			defer c.lend()()
			return f(conn)
		})
	})
	l.finish()
	return err
}

// loan is one run of a function of the caller of [Client.Use].
type loan struct {
	decided  atomic.Bool // the caller has left, or the function will not return
	panicked any
}

// run runs f where it can end its goroutine.
func (l *loan) run(f func() error) (err error) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		returned := false
		defer func() {
			if returned {
				return
			}
			value := recover()
			l.panicked = value
			if !l.decided.CompareAndSwap(false, true) && value != nil {
				panic(value) // the caller has left
			}
		}()
		err = f()
		returned = true
	}()
	<-over
	return err
}

// finish ends the caller's goroutine as f has ended its own: by a panic, or by
// runtime.Goexit, if it has not returned.
func (l *loan) finish() {
	switch {
	case l.decided.CompareAndSwap(false, true):
	case l.panicked == nil:
		runtime.Goexit()
	default:
		panic(l.panicked)
	}
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
