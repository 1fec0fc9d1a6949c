package soak

import (
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// checkSignal checks when the loss of a hold is signalled. Its Deadline is then
// that of its session, which only grows: a signal after it is too late, however
// the hold was lost.
func (r *run) checkSignal(worker string, h history.Holder) {
	windowed, ok := h.(interface{ Deadline() time.Time })
	if !ok {
		return
	}
	go func() {
		<-h.Done()
		now := time.Now()
		after, err := now.Sub(windowed.Deadline()), h.Err()
		if err == nil || errors.Is(err, coord.ErrReleased) {
			return
		}
		r.tally.count("losses signalled")
		if after <= 0 {
			return
		}
		time.Sleep(2 * clockStep) // until the clock has measured a delay that the signal had, too
		r.signalled(worker, after, r.clock.lag())
	}()
}

// signalled judges a signal that came so long after the end of the window, when
// timers were late by lag. The machine is allowed as much as for calls.
func (r *run) signalled(worker string, after, lag time.Duration) {
	r.tally.last("signal of a loss after the end of the window", after)
	if after > promptly+lag {
		r.tally.problem("%s: a loss was signalled %v after the end of the window; timers were late by %v", worker, after, lag)
	}
}
