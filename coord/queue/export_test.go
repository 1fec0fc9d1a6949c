package queue

// Remembered returns how many items the object remembers as received here.
func (q *Queue) Remembered() int {
	q.hand.mu.Lock()
	defer q.hand.mu.Unlock()
	return len(q.hand.items)
}

// Explain returns the error of a call that failed with err.
func (q *Queue) Explain(op string, err error) error { return q.explain(op, err) }
