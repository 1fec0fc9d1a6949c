package bench

import (
	"context"
	"sync"
	"time"
)

// sessions are those of one task, and the goroutines that use them.
type sessions struct {
	all    []*session
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu  sync.Mutex
	err error // the first that came before the end
}

// openAll opens a task's sessions, some at a time.
func openAll(ctx context.Context, open open, t task) (*sessions, error) {
	s := &sessions{all: make([]*session, t.sessions)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	err := together(t.sessions, func(i int) (err error) {
		s.all[i], err = open(s.ctx, t.addrs[i%len(t.addrs)], t.timeout)
		return err
	})
	if err != nil {
		s.close()
	}
	return s, err
}

// work runs f in a goroutine, which is to end when the context does.
func (s *sessions) work(f func(ctx context.Context) error) {
	s.wg.Go(func() { s.note(f(s.ctx)) })
}

// note keeps an error, unless all is over and errors are expected.
func (s *sessions) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil && s.err == nil {
		s.err = err
	}
}

func (s *sessions) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// endsWithin is how long a goroutine may go on when its session is closed. Some
// wait for ever in go-zookeeper's lock, when a watch is made at that moment.
const endsWithin = 3 * time.Second

// close ends what is under way: by the context, or, where a contender heeds
// none, with its connection.
func (s *sessions) close() {
	s.cancel()
	var closing sync.WaitGroup
	for _, one := range s.all {
		if one != nil {
			closing.Go(one.close)
		}
	}
	closing.Wait()
	ended := make(chan struct{})
	go func() { s.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(endsWithin):
	}
}
