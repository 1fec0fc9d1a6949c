package session

// pool runs tasks, so many at a time, in the order they came. Session.mu guards
// it.
type pool struct {
	running int
	queue   []func()
}

// poolSize bounds how many requests of one pool are under way. Many waiters
// must not fill the connection, in which all other requests stand behind them.
const poolSize = 128

// Enqueue is [Session.Go] for tasks that may come in large numbers: they run in
// the order of the calls, in a bounded number of goroutines.
func (s *Session) Enqueue(task func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(&s.chores, task)
}

// enqueue is begin for a task of a pool; s.mu is held.
func (s *Session) enqueue(p *pool, task func()) error {
	if p.running == poolSize {
		p.queue = append(p.queue, task)
		return nil
	}
	err := s.begin(func() {
		for task != nil {
			task()
			task = s.dequeue(p)
		}
	})
	if err == nil {
		p.running++
	}
	return err
}

// dequeue returns the pool's next task, or nil when its goroutine ends.
func (s *Session) dequeue(p *pool) (task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.queue) == 0 {
		p.queue = nil
		p.running--
		return nil
	}
	task, p.queue[0] = p.queue[0], nil
	p.queue = p.queue[1:]
	return task
}
