package session

import (
	"context"
	"encoding/binary"
)

// answer is the reply to a request, or why there is none.
type answer struct {
	zxid int64
	body []byte // of a reply without an error; only valid during the call
	err  error
}

// ask sends a request of the session's own, past the client library, which
// takes goroutines, a queue and reflection for each. It does not block: what is
// asked in a row travels together. tell is called once, by a goroutine that
// must not be held up. Without a connection, or if that is lost, the error is
// [ErrConnection].
func (s *Session) ask(r request, fields func(b []byte) []byte, tell func(answer)) {
	s.mu.Lock()
	w, isUp := s.wire, s.isUp
	r.xid = xidOwn + s.nextNumber()
	s.mu.Unlock()
	r.tell = tell
	if !isUp || !w.ask(r, fields) {
		tell(answer{err: ErrConnection})
	}
}

// nextNumber numbers the requests of the session's own; s.mu is held.
func (s *Session) nextNumber() int32 {
	s.asked++
	return int32(s.asked % (1 << 30))
}

// roundTrip asks and waits for what read makes of the answer, or for the end of
// ctx.
func roundTrip[T any](ctx context.Context, s *Session, r request, fields func(b []byte) []byte, read func(answer) T) (T, error) {
	var zero T
	if err := s.awaitUp(ctx); err != nil {
		return zero, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	s.ask(r, fields, func(a answer) {
		if a.err != nil {
			done <- result{err: a.err}
			return
		}
		done <- result{value: read(a)}
	})
	select {
	case got := <-done:
		return got.value, s.translate(got.err)
	case <-ctx.Done():
		return zero, Ended(ctx)
	}
}

// ask queues a request for the writer. It reports whether the connection was
// still there.
func (w *wire) ask(r request, fields func(b []byte) []byte) bool {
	w.mu.Lock()
	if w.lost {
		w.mu.Unlock()
		return false
	}
	begin := len(w.queue)
	b := append(w.queue, make([]byte, lengthSize)...)
	w.queue = fields(appendInt32(appendInt32(b, r.xid), r.op))
	r.size = len(w.queue) - begin - lengthSize
	binary.BigEndian.PutUint32(w.queue[begin:], uint32(r.size))
	w.asked = append(w.asked, r)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return true
}

// send writes what is asked, as long as there is a connection: all that was
// queued meanwhile at once.
func (w *wire) send() {
	for {
		select {
		case <-w.more:
			w.flush()
		case <-w.over:
			return
		}
	}
}

// keptBuffer is how large a buffer may be that is used again.
const keptBuffer = 64 << 10

func (w *wire) flush() {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	w.mu.Lock()
	packets, limit := w.queue, w.stall
	w.queue, w.spare = w.spare[:0], nil
	w.begin(w.asked...)
	clear(w.asked)
	w.asked = w.asked[:0]
	w.mu.Unlock()
	if len(packets) > 0 {
		w.transmit(packets, limit)
	}
	if cap(packets) <= keptBuffer {
		w.mu.Lock()
		w.spare = packets
		w.mu.Unlock()
	}
}
