package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrTooLarge: a request is larger than the servers accept.
var ErrTooLarge = errors.New("too large for a packet")

const (
	// DefaultMaxPacket is what servers accept in one packet unless they are
	// told otherwise (jute.maxbuffer).
	DefaultMaxPacket = 0xfffff
	// A packet counts as too large after this many connections that a server
	// closed instead of answering it.
	closings = 3
	// How long that is believed without another look.
	believed = time.Minute
)

// packets knows how large a packet may be, from the user and from what servers
// did. A server that gets too much closes the connection, and all that is under
// way is lost.
type packets struct {
	limit int           // the largest that is sent
	alone chan struct{} // has room for the one that sends what servers may close on

	mu      sync.Mutex
	fits    int       // the largest that was answered
	suspect int       // the smallest that a server closed on; 0 = none
	closed  int       // how often, since one of that size was answered
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

// admit waits until a packet may be sent, and returns what to call when it was
// answered. A packet of a size that a server has closed on is sent alone, after
// a pause: it harms no other packet of that size, and its own outcome is known.
func (p *packets) admit(size int, ending <-chan struct{}) (done func(), err error) {
	if size > p.limit {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d (the servers' jute.maxbuffer; WithMaxPacket tells another)", ErrTooLarge, size, p.limit)
	}
	pause, err := p.verdict(size)
	if pause == 0 {
		return func() {}, err
	}
	select {
	case p.alone <- struct{}{}:
	case <-ending:
		return func() {}, nil // it will not be sent
	}
	done = func() { <-p.alone }
	if pause, err = p.verdict(size); err != nil {
		done()
		return nil, err
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ending:
	}
	return done, nil
}

// verdict reports whether a packet is too large, and otherwise how long to wait
// before it is sent.
func (p *packets) verdict(size int) (pause time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.suspect == 0 || size <= max(p.fits, smallPacket):
		return 0, nil
	case size >= p.suspect && p.closed >= closings && time.Since(p.last) < believed:
		return 0, fmt.Errorf("%w: %d bytes; servers have closed %d connections on such a packet, so their limit (jute.maxbuffer) is likely less than %d bytes, and at least %d",
			ErrTooLarge, size, p.closed, p.suspect, p.fits)
	}
	return 50 * time.Millisecond << min(p.closed, closings), nil
}

// answered notes that a server accepts this request.
func (p *packets) answered(r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.op == opCreateContainer {
		p.containers = 0
	}
	p.fits = max(p.fits, r.size)
	if p.fits >= p.suspect {
		p.suspect, p.closed = 0, 0
	}
}

// refused notes that a server closed the connection: on the first of these
// packets that is larger than all that were answered, and perhaps on an
// operation that it does not know.
func (p *packets) refused(pending []request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(pending, func(r request) bool { return r.op == opCreateContainer }) {
		p.containers++
	}
	for _, r := range pending {
		if r.size <= max(p.fits, smallPacket) {
			continue
		}
		if p.suspect == 0 || r.size < p.suspect {
			p.suspect = r.size
		}
		p.closed++
		p.last = time.Now()
		return
	}
}

// smallPacket is what every server accepts.
const smallPacket = 4 << 10

// hungUp reports whether a connection has ended because the server closed it.
func hungUp(err error) bool {
	return !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// The sizes of packets, as the client library writes them (zookeeper.jute).

const packetHeader, multiHeader = 8, 9

func createSize(path string, data []byte, acl []ACL) int {
	n := 4 + len(path) + 4 + len(data) + 4 + 4
	for _, a := range acl {
		n += 4 + 4 + len(a.Scheme) + 4 + len(a.ID)
	}
	return n
}

func txnSize(ops []Op) int {
	n := packetHeader + multiHeader // the one that ends them
	for _, op := range ops {
		n += multiHeader
		switch op.Kind {
		case OpCreate:
			n += createSize(op.Path, op.Data, op.ACL)
		case OpSet:
			n += 4 + len(op.Path) + 4 + len(op.Data) + 4
		default:
			n += 4 + len(op.Path) + 4
		}
	}
	return n
}
