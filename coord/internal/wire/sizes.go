package wire

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// DefaultMaxPacket is what servers accept in one packet unless configured
	// otherwise (jute.maxbuffer).
	DefaultMaxPacket = 0xfffff
	// smallPacket is what every server accepts.
	smallPacket = 4 << 10
	// A size counts as too large after this many trials on which a server
	// closed the connection.
	proof = 3
	// How long that is believed without another look.
	believed = time.Minute
)

// Sizes knows how large a packet may be, from the user and from the behaviour
// of servers. A server that gets too much closes the connection, and all
// requests under way are lost. A server that restarts closes connections, too,
// and a proxy may at any time: a connection closed under a packet is reason for
// a trial, and proves nothing. The trial is a read of nothing that is as large
// as the packet. The server answers the trial immediately, without the
// ensemble; an answer proves that the size fits. A limit is proven when proof
// connections in a row were closed on trials.
type Sizes struct {
	Turn  chan struct{} // has one token: trials are made one at a time
	limit int           // the largest that is sent

	mu      sync.Mutex
	fits    int       // the largest that was answered, or small
	suspect int       // the smallest on which a server closed the connection; 0 = none
	closed  int       // how many trials in a row ended like that
	last    time.Time // when the last of them did
}

// NewSizes returns the sizes for servers that accept limit, according to the
// user.
func NewSizes(limit int) *Sizes {
	p := &Sizes{limit: limit, fits: smallPacket, Turn: make(chan struct{}, 1)}
	p.Turn <- struct{}{}
	return p
}

// Doubt is why a packet is not sent: servers may refuse its size. After Pause,
// a trial is due.
type Doubt struct {
	Size  int
	Pause time.Duration
}

func (d Doubt) Error() string { return fmt.Sprintf("servers may refuse packets of %d bytes", d.Size) }

// Judge returns why a packet of a size is not to be sent: a [Doubt], or
// [ErrTooLarge].
func (p *Sizes) Judge(size int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case size > p.limit:
		return fmt.Errorf("%w: %d bytes, the limit is %d (jute.maxbuffer)", ErrTooLarge, size, p.limit)
	case p.suspect == 0 || size <= p.fits:
		return nil
	case size >= p.suspect && p.closed >= proof && time.Since(p.last) < believed:
		return fmt.Errorf(
			"%w: %d bytes; servers have closed %d connections on such a packet, so their limit (jute.maxbuffer) is likely less than %d bytes, and at least %d",
			ErrTooLarge, size, p.closed, p.suspect, p.fits)
	}
	return Doubt{size, 50 * time.Millisecond << min(p.closed, proof)}
}

func (p *Sizes) admit(r Request) error {
	if r.Trial || r.Size <= smallPacket {
		return nil
	}
	return p.Judge(r.Size)
}

// answered notes that a server accepts a size.
func (p *Sizes) answered(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fits = max(p.fits, size); p.fits >= p.suspect {
		p.suspect, p.closed = 0, 0
	}
}

// hungUpOn notes that a server closed the connection with these requests
// unanswered. A connection that is closed without a doubtful packet shows that
// connections are closed anyway.
func (p *Sizes) hungUpOn(pending []Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(pending, func(r Request) bool { return r.Size > p.fits })
	switch {
	case at < 0:
		if p.closed < proof {
			p.closed = 0
		}
		return
	case pending[at].Trial:
		p.closed++
		p.last = time.Now()
	}
	if size := pending[at].Size; p.suspect == 0 || size < p.suspect {
		p.suspect = size
	}
}
