package queue

// Remembered returns how many items the object remembers as received here.
func (q *Queue) Remembered() int {
	q.dispatcher.mu.Lock()
	defer q.dispatcher.mu.Unlock()
	return len(q.dispatcher.items)
}
