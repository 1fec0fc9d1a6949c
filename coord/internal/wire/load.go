package wire

import (
	"context"
	"fmt"
	"time"
)

const (
	// spans is how many spans T has: what a link carries is counted by the
	// span. Probes that always wait for one span behind other requests cost no
	// hold.
	spans = 16
	// mostSpans is how many spans one request may take: T/4. A hold outlives
	// that now and then.
	mostSpans = 4
	// light requests are never held back.
	light = 1 << 10
	// unproven is how many bytes a link is assumed to carry in a span before
	// anything is known. The estimate is at most growth times the bytes that
	// were measured.
	unproven = 16 << 10
	growth   = 4
	// After slowTrials trials in a row that show no more, a link counts as
	// slow.
	slowTrials = 3
)

// load bounds what is under way on a connection, so that a session's own
// traffic does not delay its probes: without them it loses its holds, and then
// the connection. Whatever callers send side by side:
//
//   - No more is under way than the link has lately carried in T/16.
//   - A request that takes longer than that goes alone, and while there is a
//     hold, only if the trust window lasts for it and for the probes behind it
//     ([Options.Spare]).
//   - Other requests wait for their turn, in the order in which they came, until
//     their contexts end ([HeldBack]).
//   - A request that would take more than T/4, the round trip included, fails
//     with [ErrTooLarge].
//
// Requests of up to 1 KiB count, but do not wait: claims, deletions, most
// reads. The sizes of replies are not known in advance, and not bounded.
//
// A reply shows that the link has carried its request, and all before it. That
// is measured from a moment when hardly anything was under way, so the estimate
// can be too low and never too high. If nothing is known of the last T, data
// must not be the trial: they would take too long on a slow link. Reads of
// nothing go before them, each as large as the link is assumed to bear.
type load struct {
	flight int           // bytes that were sent and not answered
	limit  int           // bytes that the link is assumed to carry in a span
	known  bool          // the limit was measured: the link carries no more
	trip   time.Duration // the shortest round trip

	from    time.Time // when the measurement began
	carried int       // bytes sent and answered since then
	at      time.Time // when the limit was last measured

	slow  int       // trials in a row that have shown nothing more
	tried time.Time // when the last of them was over

	waiting int           // how many requests wait
	turn    chan struct{} // has one token, for the first that waits
	eased   chan struct{} // wakes it
}

func newLoad() load {
	l := load{limit: unproven, turn: make(chan struct{}, 1), eased: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// span is the time in which the link must carry what is under way.
func (c *Conn) span() time.Duration { return c.stall * stallShare / spans }

// HeldBack is why a request is not sent yet.
type HeldBack struct{ size, ahead, rate int }

func (h HeldBack) Error() string {
	return fmt.Sprintf("%d bytes wait for the link, behind %d bytes under way; it is known to carry %d kB/s", h.size,
		h.ahead, h.rate)
}

// sent notes that a request is sent; the connection's mu is held.
func (l *load) sent(r Request) {
	if l.flight < unproven/4 {
		l.from, l.carried = r.sent, -l.flight
	}
	l.flight += r.Size
}

// answered notes that the oldest request was answered; c.mu is held.
func (c *Conn) answered(r Request, now time.Time) {
	l, took := &c.load, now.Sub(r.sent)
	if l.trip == 0 || took < l.trip {
		l.trip = took
	}
	l.carried += r.Size
	if l.carried < unproven/2 {
		return
	}
	lasted := now.Sub(l.from)
	in := max(lasted-l.trip, lasted/8, time.Microsecond)
	most := growth * l.carried
	shown := int(min(int64(l.carried)*c.span().Microseconds()/in.Microseconds(), int64(most)))
	if shown > l.limit || took-l.trip > c.span() {
		l.limit, l.known = max(shown, unproven/4), shown < most
	}
	l.at = now
	if lasted > mostSpans*c.span() { // later bytes count for more
		l.from, l.carried = now.Add(-lasted/2), l.carried/2
	}
}

// busy returns for how long the link will be busy with so many bytes; c.mu is
// held.
func (c *Conn) busy(bytes int) time.Duration {
	if l := &c.load; time.Since(l.at) > spans*c.span() {
		l.limit, l.known = unproven, false
	}
	return time.Duration(int64(c.span()) * int64(bytes) / int64(c.load.limit))
}

// bears returns why a request must wait, or nil; c.mu is held.
func (c *Conn) bears(size int) error {
	under := c.load.flight + len(c.queue) // the request included
	if size <= light || c.load.waiting == 0 && (under <= unproven || c.busy(under) <= c.span()) {
		return nil
	}
	return c.heldBack(size, under-size)
}

func (c *Conn) heldBack(size, ahead int) HeldBack {
	return HeldBack{size, ahead, c.rate()}
}

// rate is how many kB the link carries in a second; c.mu is held.
func (c *Conn) rate() int {
	return int(int64(c.load.limit) * time.Second.Milliseconds() / max(c.span().Milliseconds(), 1) / 1000)
}

// Await is [Conn.Ask] that waits until the link can carry the request; see
// [load]. When ctx ends before, the error is a [HeldBack], and nothing was
// sent.
func (c *Conn) Await(ctx context.Context, r Request, fields func(b []byte) []byte) error {
	r.Yields = true
	err := c.Ask(r, fields)
	held, is := err.(HeldBack)
	if !is {
		return err
	}
	c.wait(1)
	defer c.wait(-1)
	select {
	case <-c.load.turn:
	case <-ctx.Done():
		return held
	case <-c.over:
		return ErrConnection
	}
	defer func() { c.load.turn <- struct{}{} }()
	for r.Yields = false; ; {
		trial, err := c.next(held.size)
		held, is = err.(HeldBack)
		switch {
		case err == nil:
			return c.Ask(r, fields)
		case !is:
			return err
		case trial > 0:
			err = c.try(ctx, trial)
		default:
			err = c.ease(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return held
		case err != nil:
			return err
		}
	}
}

func (c *Conn) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load.waiting += n
}

// next decides about the first request that waits: it returns nil if the
// request can be sent, a [HeldBack] if it must wait, with the size of a trial
// if one is due, or why the link never carries it.
func (c *Conn) next(size int) (trial int, err error) {
	span := c.span()
	most := mostSpans * span
	spare := most
	if c.Spare != nil {
		spare = min(spare, c.Spare())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l, under := &c.load, c.load.flight+len(c.queue)
	alone, all := c.busy(size), c.busy(under+size)
	if time.Since(l.tried) > spans*span {
		l.slow = 0
	}
	free, tooLong := under < l.limit/4, alone+l.trip > most
	switch {
	case all <= span, alone > span && free && all+l.trip <= spare:
		return 0, nil
	case tooLong && l.slow >= slowTrials:
		return 0, fmt.Errorf("%w on this link: %d bytes take %v, since it has lately carried %d kB/s; "+
			"a request may take %v (a quarter of the session timeout), so that the session's probes get through",
			ErrTooLarge, size, (alone + l.trip).Round(10*time.Millisecond), c.rate(), most)
	case free && (tooLong || !l.known):
		trial = min(size, l.limit-under)
	}
	return trial, c.heldBack(size, under)
}

// try has the link carry a read of nothing of a size.
func (c *Conn) try(ctx context.Context, size int) error {
	c.mu.Lock()
	before := c.load.limit
	c.mu.Unlock()
	answer := make(chan struct{})
	err := c.Ask(Request{Op: OpExists, Trial: true, Caller: &Call[any]{Done: answer}}, Nowhere(size))
	if err != nil {
		return err
	}
	select {
	case <-answer:
	case <-ctx.Done():
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.load
	l.slow++
	if l.tried = time.Now(); l.limit > before+before/4 {
		l.slow = 0
	}
	return nil
}

// ease waits until something has changed: an answer has come, or the trust
// window has moved.
func (c *Conn) ease(ctx context.Context) error {
	select {
	case <-c.load.eased:
	case <-time.After(c.span() / 4):
	case <-ctx.Done():
	case <-c.over:
		return ErrConnection
	}
	return nil
}
