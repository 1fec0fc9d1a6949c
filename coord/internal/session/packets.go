package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// ErrTooLarge: a request is larger than the servers accept.
var ErrTooLarge = errors.New("too large for a packet")

const (
	// DefaultMaxPacket is what servers accept in one packet unless configured
	// otherwise (jute.maxbuffer).
	DefaultMaxPacket = 0xfffff
	// A size counts as too large after this many trials on which a server
	// closed the connection.
	proof = 3
	// How long that is believed without another look.
	believed = time.Minute
)

// packets knows how large a packet may be, from the user and from what servers
// did. A server that gets too much closes the connection, and all that is under
// way is lost. So does one that restarts, and a proxy whenever it likes: that a
// connection was closed under a packet is reason for a trial, and proves
// nothing. The trial is a read of nothing that is as large as the packet. The
// server that gets it answers immediately by itself, whatever the ensemble is
// doing; an answer proves that the size fits. A limit is proven when proof
// connections in a row were closed on trials.
type packets struct {
	limit int           // the largest that is sent
	alone chan struct{} // has room for one: trials are made one at a time

	mu      sync.Mutex
	fits    int       // the largest that was answered
	suspect int       // the smallest under which a server closed the connection; 0 = none
	closed  int       // how many trials since then ended so
	last    time.Time // when

	containers int // how often servers closed on the creation of one, since they answered one
}

// hasContainers reports whether servers seem to know containers: those before
// ZooKeeper 3.5 close the connection.
func (p *packets) hasContainers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.containers < 2
}

func newPackets(limit int) *packets { return &packets{limit: limit, alone: make(chan struct{}, 1)} }

// admit waits until it is known whether servers accept packets of a size in
// doubt, or until ctx or the session ends.
func (p *packets) admit(ctx context.Context, s *Session, size int) error {
	select {
	case p.alone <- struct{}{}:
	case <-ctx.Done():
		return Ended(ctx)
	case <-s.Done():
		return s.Err()
	}
	defer func() { <-p.alone }()
	for {
		pause, err := p.verdict(size)
		if pause == 0 {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Ended(ctx)
		case <-s.Done():
			timer.Stop()
			return s.Err()
		}
		_, _ = roundTrip(ctx, s, wire.Request{Op: wire.OpExists, Trial: true}, wire.Nowhere(size), nothing)
	}
}

// doubtfulSize is the size of a packet that is not sent yet: see admit.
type doubtfulSize int

func (s doubtfulSize) Error() string {
	return fmt.Sprintf("servers may refuse packets of %d bytes", int(s))
}

// verdict reports whether a packet is too large, and otherwise how long to wait
// before a trial of its size, if it needs one.
func (p *packets) verdict(size int) (pause time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case size > p.limit:
		return 0, fmt.Errorf("%w: %d bytes, the limit is %d (the servers' jute.maxbuffer; WithMaxPacket tells another)", ErrTooLarge, size, p.limit)
	case p.suspect == 0 || size <= max(p.fits, smallPacket):
		return 0, nil
	case size >= p.suspect && p.closed >= proof && time.Since(p.last) < believed:
		return 0, fmt.Errorf("%w: %d bytes; servers have closed %d connections on such a packet, so their limit (jute.maxbuffer) is likely less than %d bytes, and at least %d",
			ErrTooLarge, size, p.closed, p.suspect, p.fits)
	}
	return 50 * time.Millisecond << min(p.closed, proof), nil
}

// answered notes that a server accepts this request.
func (p *packets) answered(r wire.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Op == wire.OpCreateContainer {
		p.containers = 0
	}
	p.fits = max(p.fits, r.Size)
	if p.fits >= p.suspect {
		p.suspect, p.closed = 0, 0
	}
}

// refused notes that a server closed the connection with these requests
// unanswered. A connection that is closed without a doubtful packet shows that
// connections are closed anyway.
func (p *packets) refused(pending []wire.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(pending, func(r wire.Request) bool { return r.Op == wire.OpCreateContainer }) {
		p.containers++
	}
	at := slices.IndexFunc(pending, func(r wire.Request) bool { return r.Size > max(p.fits, smallPacket) })
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

// smallPacket is what every server accepts.
const smallPacket = 4 << 10
