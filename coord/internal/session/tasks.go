package session

import (
	"context"
	"sync"
)

// tasks are the goroutines that a session's end waits for.
type tasks struct {
	ending context.Context

	mu        sync.Mutex
	running   sync.WaitGroup
	concluded bool // no task begins any more
}

// begin runs a task, unless the session is over: the error says why.
func (t *tasks) begin(task func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.concluded {
		return context.Cause(t.ending)
	}
	t.running.Go(task)
	return nil
}

// conclude waits for all of them, once the session is over.
func (t *tasks) conclude() {
	t.mu.Lock()
	t.concluded = true
	t.mu.Unlock()
	t.running.Wait()
}

// pipeline sends requests, poolSize at a time, in the order they came. A
// request needs no goroutine while it is under way.
type pipeline struct {
	mu       sync.Mutex
	underWay int
	queue    []func() bool
}

// add has send called in its turn. If send returns true, the request is under
// way until its sender calls [pipeline.over].
func (p *pipeline) add(send func() bool) {
	p.mu.Lock()
	if p.underWay == poolSize {
		p.queue = append(p.queue, send)
		p.mu.Unlock()
		return
	}
	p.underWay++
	p.mu.Unlock()
	if !send() {
		p.over()
	}
}

// over notes that a request is no longer under way, and sends the next.
func (p *pipeline) over() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.queue = nil
			p.underWay--
			p.mu.Unlock()
			return
		}
		send := p.queue[0]
		p.queue[0], p.queue = nil, p.queue[1:]
		p.mu.Unlock()
		if send() {
			return
		}
	}
}

// pool runs tasks, poolSize at a time, in the order they came.
type pool struct {
	*tasks

	mu      sync.Mutex
	running int
	queue   []func()
}

// enqueue is begin for many tasks.
func (p *pool) enqueue(task func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == poolSize {
		p.queue = append(p.queue, task)
		return nil
	}
	err := p.begin(func() {
		for task != nil {
			task()
			task = p.dequeue()
		}
	})
	if err == nil {
		p.running++
	}
	return err
}

// dequeue returns the next task, or nil if there is none: then the goroutine
// that asks ends.
func (p *pool) dequeue() (task func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.queue = nil
		p.running--
		return nil
	}
	task, p.queue[0] = p.queue[0], nil
	p.queue = p.queue[1:]
	return task
}
