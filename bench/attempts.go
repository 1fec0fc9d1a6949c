package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is that of an attempt at a lock that is not released.
const patience = 25 * time.Millisecond

// attempt is t.count attempts by one session at a lock that another holds.
func attempt(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	lock, err := s.all[1].lock(t.path + "/lock")
	if err == nil {
		_, err = lock(s.ctx)
	}
	if err == nil {
		<-time.After(2 * patience) // the holder watches its node by then
		lock, err = s.all[0].lock(t.path + "/lock")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return &job{
		run: func() (figures, error) {
			begun := time.Now()
			for range t.count {
				trying, cancel := context.WithTimeout(s.ctx, patience)
				_, err := lock(trying)
				cancel()
				if err == nil {
					return nil, errors.New("a held lock was acquired")
				}
				<-time.After(patience) // the deletion goes on
			}
			return figures{"ops": float64(t.count), "seconds": time.Since(begun).Seconds()}, nil
		},
		close: s.close,
	}, nil
}

// turnover is a session that receives and acknowledges, and one that puts as
// many, while t.count items are in the queue.
func turnover(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	put, _, err := s.all[0].queue(t.path + "/queue")
	if err == nil {
		err = put(s.ctx, make([]byte, itemSize)) // makes the directories
	}
	if err == nil {
		err = together(t.count-1, func(int) error { return put(s.ctx, make([]byte, itemSize)) })
	}
	_, receive, receiveErr := s.all[1].queue(t.path + "/queue")
	if err = errors.Join(err, receiveErr); err != nil {
		s.close()
		return nil, fmt.Errorf("a queue of %d: %w", t.count, err)
	}
	return &job{run: func() (figures, error) { return receiveAll(s, t, put, receive) }, close: s.close}, nil
}

// receiveAll receives the first item, which lists the queue, and then measures.
func receiveAll(s *sessions, t task, put put, receive receive) (figures, error) {
	begun := time.Now()
	first, err := receive(s.ctx)
	if err != nil {
		return nil, err
	}
	f := figures{"first": time.Since(begun).Seconds()}
	more := make(chan struct{}, backlog)
	s.work(func(ctx context.Context) error { return refill(ctx, put, more) })
	n := 0
	for begun = time.Now(); time.Since(begun) < t.during; n++ {
		if err := first(s.ctx); err != nil {
			return nil, err
		}
		more <- struct{}{}
		if first, err = receive(s.ctx); err != nil {
			return nil, err
		}
	}
	f["ops"], f["seconds"] = float64(n), time.Since(begun).Seconds()
	return f, s.failure()
}

func refill(ctx context.Context, put put, more <-chan struct{}) error {
	item := make([]byte, itemSize)
	for {
		select {
		case <-more:
			if err := put(ctx, item); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
