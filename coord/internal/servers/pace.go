package servers

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// BackOff is the first pause before an attempt that may fail again.
	BackOff = 25 * time.Millisecond

	// slowest is the least time between two attempts when no session is left to
	// save. A random part of slack is added.
	slowest = time.Second
	slack   = slowest / 4

	// steps is how often the pause doubles.
	steps = 6
)

// Pace is how fast a client tries to connect, over all its sessions.
type Pace struct {
	mu       sync.Mutex
	attempts int       // since a server answered
	begun    time.Time // the last of them
	refusals int       // in a row, by servers that answer
	last     time.Time // when
}

// next lets the first attempt at each of the servers through immediately,
// unless connections do not last. Then it backs off until a server has answered
// a request or, after a server refused the session, until none has done so for
// the timeout. As long as the session can be saved, the pauses grow to a
// fortieth of the timeout, or a second if that is less: little of a window must
// be spent waiting for a server that is back. Later there is one attempt a
// second: after an outage, the servers have all clients to serve. next returns
// how often every server was tried before.
func (p *Pace) next(servers int, timeout time.Duration, brief, saving bool) (round int, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	round = p.attempts / servers
	p.attempts++
	if time.Since(p.last) > timeout {
		p.refusals = 0
	}
	tries := max(round, p.refusals)
	pause = BackOff << min(tries, steps)
	switch {
	case tries == 0 && !brief:
		return round, 0
	case saving:
		pause = min(pause, slowest, timeout/40)
	case pause >= slowest:
		return round, slowest + rand.N(slack) - time.Since(p.begun)
	}
	return round, pause/2 + rand.N(pause/2+1)
}

// begins notes that an attempt begins.
func (p *Pace) begins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = time.Now()
}

// Answered notes that a server has answered.
func (p *Pace) Answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = 0
}

// refused notes that a server refused the session, and returns how often in a
// row that was so.
func (p *Pace) refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	p.refusals++
	return p.refusals
}
