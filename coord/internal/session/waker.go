package session

// Waker wakes a goroutine that waits for several things: it receives from the
// waker, and looks.
type Waker chan struct{}

// NewWaker returns a waker for one goroutine.
func NewWaker() Waker { return make(Waker, 1) }

// Wake wakes the goroutine, now or when it waits next. It does not block.
func (k Waker) Wake() {
	select {
	case k <- struct{}{}:
	default:
	}
}

// Rest forgets an earlier wake-up: the goroutine looks now.
func (k Waker) Rest() {
	select {
	case <-k:
	default:
	}
}

// Signal is a channel that is closed once, and made only when it is waited for.
// Its user's mutex guards it.
type Signal struct{ ch chan struct{} }

// Done returns the channel, which is closed already if it is over.
func (s *Signal) Done(over bool) <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
		if over {
			close(s.ch)
		}
	}
	return s.ch
}

// Close closes the channel. It is called once.
func (s *Signal) Close() {
	if s.ch != nil {
		close(s.ch)
	}
}
