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
// when its watch fires. What remains is a deletion, its event, and the way of
// both.
func chain(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	c := &links{sessions: all, gone: make([]<-chan zk.Event, t.count), deaths: make([]time.Time, t.count)}
	return func() (figures, error) { return c.run(t) }, c.prepare(t)
}

type links struct {
	sessions []*session
	gone     []<-chan zk.Event // of each node, as the next session sees it
	deaths   []time.Time
}

func (c *links) owner(i int) *zk.Conn { return c.sessions[i%len(c.sessions)].conn }

func node(t task, i int) string { return fmt.Sprintf("%s/n-%d", t.path, i) }

func (c *links) prepare(t task) error {
	if err := makeDir(c.owner(0), t.path); err != nil {
		return err
	}
	err := together(t.count, func(i int) error {
		_, err := c.owner(i).Create(node(t, i), nil, zk.FlagEphemeral, everyone)
		return err
	})
	if err != nil {
		return err
	}
	// A session's server may be behind the one that made its neighbour's node.
	err = together(len(c.sessions), func(i int) error {
		_, err := c.owner(i).Sync(t.path)
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
	for s := range c.sessions {
		all.Go(func() {
			for i := s; i < t.count; i += len(c.sessions) {
				if i > 0 {
					<-c.gone[i-1]
				}
				c.deaths[i] = time.Now()
				if c.owner(i).Delete(node(t, i), -1) != nil {
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
func probe(s *sessions, t task) (measurement, error) {
	sessions, err := s.openAll(t)
	return func() (figures, error) {
		var n atomic.Int64
		errs := make([]error, t.sessions*t.each)
		var all sync.WaitGroup
		begun := time.Now()
		for i := range errs {
			all.Go(func() {
				for errs[i] == nil && time.Since(begun) < t.during {
					_, errs[i] = sessions[i%t.sessions].conn.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
					n.Add(1)
				}
			})
		}
		all.Wait()
		return figures{"ops": float64(n.Load()), "seconds": time.Since(begun).Seconds()}, errors.Join(errs...)
	}, err
}

const (
	// itemSize is the size of an item's data.
	itemSize = 100
	// backlog is how many items producers may be ahead of consumers.
	backlog = 100
	// batchSize is how many items go together where a contender's name says so.
	batchSize = 16
)

// queueItems is t.sessions-t.each producers and t.each consumers, each with a
// session of its own. An item counts when it is acknowledged.
func queueItems(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	var done atomic.Int64
	room := make(chan struct{}, backlog)
	for range backlog {
		room <- struct{}{}
	}
	for i, one := range all {
		put, receive, err := one.queue(t.path + "/queue")
		if err != nil {
			return nil, err
		}
		if i < t.each {
			s.work(func(ctx context.Context) error { return consume(ctx, receive, room, &done) })
		} else {
			s.work(func(ctx context.Context) error { return produce(ctx, put, room) })
		}
	}
	<-time.After(t.settle)
	return func() (figures, error) {
		before, begun := done.Load(), time.Now()
		<-time.After(t.during)
		return figures{"ops": float64(done.Load() - before), "seconds": time.Since(begun).Seconds()}, s.failure()
	}, nil
}

// produce puts an item whenever there is room for one.
func produce(ctx context.Context, put put, room <-chan struct{}) error {
	item := make([]byte, itemSize)
	for {
		select {
		case <-room:
		case <-ctx.Done():
			return nil
		}
		if err := put(ctx, item); err != nil {
			return err
		}
	}
}

func consume(ctx context.Context, receive receive, room chan<- struct{}, done *atomic.Int64) error {
	for {
		ack, err := receive(ctx)
		if err != nil {
			return err
		}
		if err := ack(ctx); err != nil {
			return err
		}
		room <- struct{}{}
		done.Add(1)
	}
}

// inBatches makes puts and receives of single items from puts and receives of
// batches. An item counts before its batch is acknowledged.
func inBatches(
	size int, putAll func(context.Context, [][]byte) error, receiveAll func(context.Context) (n int, ack call, err error),
) (put, receive) {
	var filling [][]byte
	put := func(ctx context.Context, item []byte) error {
		if filling = append(filling, item); len(filling) < size {
			return nil
		}
		full := filling
		filling = nil
		return putAll(ctx, full)
	}
	left, ackAll := 0, call(nil)
	ack := func(ctx context.Context) error {
		if left > 0 {
			return nil
		}
		return ackAll(ctx)
	}
	return put, func(ctx context.Context) (_ call, err error) {
		if left == 0 {
			left, ackAll, err = receiveAll(ctx)
		}
		left--
		return ack, err
	}
}

// barrier is rounds of a double barrier for t.each members (at least one) in
// each session, which all enter together, and leave together when the last of
// them is in.
func barrier(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	members := t.sessions * max(t.each, 1)
	enters, leaves := make([]call, members), make([]call, members)
	for i := range members {
		if enters[i], leaves[i], err = all[i%t.sessions].barrier(t.path+"/barrier", members); err != nil {
			return nil, err
		}
	}
	round := func() (enter, leave time.Duration) { return s.atOnce(enters), s.atOnce(leaves) }
	round() // makes the directories
	return func() (figures, error) {
		var enter, leave []time.Duration
		begun := time.Now()
		for time.Since(begun) < t.during && s.failure() == nil {
			e, l := round()
			enter, leave = append(enter, e), append(leave, l)
		}
		return figures{
			"ops": float64(len(enter) * members), "seconds": time.Since(begun).Seconds(),
			"enter": median(enter), "leave": median(leave),
		}, s.failure()
	}, nil
}

// atOnce makes all calls concurrently and returns how long the last of them
// took.
func (s *sessions) atOnce(calls []call) time.Duration {
	var all sync.WaitGroup
	begun := time.Now()
	for _, call := range calls {
		all.Go(func() { s.note(call(s.ctx)) })
	}
	all.Wait()
	return time.Since(begun)
}

// turnover is a session that receives and acknowledges, and one that puts as
// many, while t.count items are in the queue.
func turnover(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	put, _, err := all[0].queue(t.path + "/queue")
	if err == nil {
		err = put(s.ctx, make([]byte, itemSize)) // makes the directories
	}
	if err == nil {
		err = together(t.count-1, func(int) error { return put(s.ctx, make([]byte, itemSize)) })
	}
	_, receive, receiveErr := all[1].queue(t.path + "/queue")
	if err = errors.Join(err, receiveErr); err != nil {
		return nil, fmt.Errorf("a queue of %d: %w", t.count, err)
	}
	return func() (figures, error) { return receiveAll(s, t, put, receive) }, nil
}

// receiveAll receives the first item, which lists the queue, and then measures.
func receiveAll(s *sessions, t task, put put, receive receive) (figures, error) {
	begun := time.Now()
	first, err := receive(s.ctx)
	if err != nil {
		return nil, err
	}
	f := figures{"first": time.Since(begun).Seconds()}
	room := make(chan struct{}, backlog)
	s.work(func(ctx context.Context) error { return produce(ctx, put, room) })
	n := 0
	for begun = time.Now(); time.Since(begun) < t.during; n++ {
		if err := first(s.ctx); err != nil {
			return nil, err
		}
		room <- struct{}{}
		if first, err = receive(s.ctx); err != nil {
			return nil, err
		}
	}
	f["ops"], f["seconds"] = float64(n), time.Since(begun).Seconds()
	return f, s.failure()
}
