package zkembed

import (
	"sync"
	"time"
)

// item is one packet on its way through a connection.
type item struct {
	b        []byte
	due      time.Time // not to be passed on earlier; zero: immediately
	fourWord bool      // a four-letter word instead of a packet
}

// size counts what the queue itself needs too: many empty packets are not
// free.
func (it item) size() int { return len(it.b) + 64 }

// queue is a FIFO between two goroutines of a connection. One goroutine pops;
// any number push without waiting. A producer that can wait calls wait first,
// which bounds the memory for a client that sends much and reads little.
type queue struct {
	mu     sync.Mutex
	items  []item
	bytes  int // of items, and of the one that was popped last: it is being passed on
	taken  int // of that one
	closed bool
	more   chan struct{} // capacity 1: something was pushed, or closed
	room   chan struct{} // capacity 1: something was passed on
}

func newQueue() *queue {
	return &queue{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// push appends and returns the number of bytes that wait now. A closed queue
// takes nothing more.
func (q *queue) push(it item) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.items = append(q.items, it)
		q.bytes += it.size()
		signal(q.more)
	}
	return q.bytes
}

// close lets the consumer take what is there and then ends it.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.more)
}

// pop waits for the next item; the one before has been passed on. ok is false
// when the queue is closed and drained, or dead is closed.
func (q *queue) pop(dead <-chan struct{}) (it item, ok bool) {
	for {
		q.mu.Lock()
		q.bytes -= q.taken
		q.taken = 0
		signal(q.room)
		if len(q.items) > 0 {
			it = q.items[0]
			q.items[0] = item{}
			if len(q.items) > 1 {
				q.items = q.items[1:]
			} else {
				q.items = q.items[:0]
			}
			q.taken = it.size()
			q.mu.Unlock()
			return it, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return it, false
		}
		select {
		case <-q.more:
		case <-dead:
			return it, false
		}
	}
}

// wait returns when fewer than limit bytes wait in the queue, or false when
// dead is closed. One goroutine waits.
func (q *queue) wait(limit int, dead <-chan struct{}) bool {
	for {
		q.mu.Lock()
		ok := q.bytes < limit
		q.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-q.room:
		case <-dead:
			return false
		}
	}
}
