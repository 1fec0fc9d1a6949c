package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// itemSize is that of an item's data.
	itemSize = 100
	// backlog is how many items producers may be ahead of consumers.
	backlog = 100
	// batchSize is how many items go together where a contender's name says so.
	batchSize = 16
)

// queueItems is t.sessions-t.each producers and t.each consumers, each with a
// session of its own. An item counts when it is acknowledged.
func queueItems(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	var done atomic.Int64
	ahead := make(chan struct{}, backlog)
	for i, one := range s.all {
		put, receive, err := one.queue(t.path + "/queue")
		if err != nil {
			s.close()
			return nil, err
		}
		if i < t.each {
			s.work(func(ctx context.Context) error { return consume(ctx, receive, ahead, &done) })
		} else {
			s.work(func(ctx context.Context) error { return produce(ctx, put, ahead) })
		}
	}
	<-time.After(t.settle)
	run := func() (figures, error) {
		before, begun := done.Load(), time.Now()
		<-time.After(t.during)
		return figures{"ops": float64(done.Load() - before), "seconds": time.Since(begun).Seconds()}, s.failure()
	}
	return &job{run: run, close: s.close}, nil
}

func produce(ctx context.Context, put put, ahead chan<- struct{}) error {
	item := make([]byte, itemSize)
	for {
		select {
		case ahead <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		if err := put(ctx, item); err != nil {
			return err
		}
	}
}

func consume(ctx context.Context, receive receive, ahead <-chan struct{}, done *atomic.Int64) error {
	for {
		ack, err := receive(ctx)
		if err != nil {
			return err
		}
		if err := ack(ctx); err != nil {
			return err
		}
		<-ahead
		done.Add(1)
	}
}

// inBatches makes puts and receives of single items out of those of batches. An
// item counts before its batch is acknowledged.
func inBatches(size int, putAll func(context.Context, [][]byte) error, receiveAll func(context.Context) (n int, ack call, err error)) (put, receive) {
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
// each session, who all come at once, and leave at once when the last of them
// is in.
func barrier(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	members := t.sessions * max(t.each, 1)
	enters, leaves := make([]call, members), make([]call, members)
	for i := range members {
		if enters[i], leaves[i], err = s.all[i%t.sessions].barrier(t.path+"/barrier", members); err != nil {
			s.close()
			return nil, err
		}
	}
	round := func() (enter, leave time.Duration) { return s.atOnce(enters), s.atOnce(leaves) }
	round() // makes the directories
	run := func() (figures, error) {
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
	}
	return &job{run: run, close: s.close}, nil
}

// atOnce makes all calls at once and returns how long the last of them took.
func (s *sessions) atOnce(calls []call) time.Duration {
	var all sync.WaitGroup
	begun := time.Now()
	for _, call := range calls {
		all.Go(func() { s.note(call(s.ctx)) })
	}
	all.Wait()
	return time.Since(begun)
}
