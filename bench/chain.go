package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// chain is the limit of hand-offs: nodes and watches are prepared, each of the
// t.count nodes by one session and watched by the next, which deletes its own
// when told. What remains is a deletion, its event, and the way of both.
func chain(ctx context.Context, _ open, t task) (*job, error) {
	c := &links{}
	for i := range t.sessions {
		conn, err := connect(ctx, t.addrs[i%len(t.addrs)], t.timeout)
		if err != nil {
			c.close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
	}
	if err := c.prepare(t); err != nil {
		c.close()
		return nil, err
	}
	return &job{run: func() (figures, error) { return c.run(t) }, close: c.close}, nil
}

type links struct {
	conns  []*zk.Conn
	gone   []<-chan zk.Event // of each node, as the next session sees it
	deaths []time.Time
}

func (c *links) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (c *links) owner(i int) *zk.Conn { return c.conns[i%len(c.conns)] }

func node(t task, i int) string { return fmt.Sprintf("%s/n-%d", t.path, i) }

func (c *links) prepare(t task) error {
	if err := makeDir(c.conns[0], t.path); err != nil {
		return err
	}
	c.gone, c.deaths = make([]<-chan zk.Event, t.count), make([]time.Time, t.count)
	err := together(t.count, func(i int) error {
		_, err := c.owner(i).Create(node(t, i), nil, zk.FlagEphemeral, everyone)
		return err
	})
	if err != nil {
		return err
	}
	// A session's server may be behind the one that made its neighbour's node.
	err = together(len(c.conns), func(i int) error {
		_, err := c.conns[i].Sync(t.path)
		return err
	})
	if err != nil {
		return err
	}
	return together(t.count, func(i int) (err error) {
		_, _, c.gone[i], err = c.owner(i + 1).GetW(node(t, i))
		return err
	})
}

// together calls f for 0 to n-1, some at a time.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	room := make(chan struct{}, 64)
	var all sync.WaitGroup
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			errs[i] = f(i)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// run deletes the first node and waits for the last to go.
func (c *links) run(t task) (figures, error) {
	var all sync.WaitGroup
	begun := time.Now()
	for s := range c.conns {
		all.Go(func() {
			for i := s; i < t.count; i += len(c.conns) {
				if i > 0 {
					<-c.gone[i-1]
				}
				c.deaths[i] = time.Now()
				if c.conns[s].Delete(node(t, i), -1) != nil {
					return // the rest then waits until the harness gives up
				}
			}
		})
	}
	all.Wait()
	between := make([]time.Duration, 0, t.count)
	for i, at := range c.deaths[1:] {
		between = append(between, at.Sub(c.deaths[i]))
	}
	return figures{"ops": float64(t.count), "seconds": time.Since(begun).Seconds(), "p50": median(between)}, nil
}

// probe is t.sessions that send probes, t.each at a time, as those do that keep
// the trust window of a lock open.
func probe(ctx context.Context, _ open, t task) (*job, error) {
	conns := make([]*zk.Conn, t.sessions)
	closeAll := func() {
		_ = together(len(conns), func(i int) error {
			if conns[i] != nil {
				conns[i].Close()
			}
			return nil
		})
	}
	err := together(t.sessions, func(i int) (err error) {
		conns[i], err = connect(ctx, t.addrs[i%len(t.addrs)], t.timeout)
		return err
	})
	if err != nil {
		closeAll()
		return nil, err
	}
	run := func() (figures, error) {
		var n atomic.Int64
		errs := make([]error, t.sessions*t.each)
		var all sync.WaitGroup
		begun := time.Now()
		for i := range errs {
			all.Go(func() {
				for errs[i] == nil && time.Since(begun) < t.during {
					_, errs[i] = conns[i%t.sessions].Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
					n.Add(1)
				}
			})
		}
		all.Wait()
		return figures{"ops": float64(n.Load()), "seconds": time.Since(begun).Seconds()}, errors.Join(errs...)
	}
	return &job{run: run, close: closeAll}, nil
}
