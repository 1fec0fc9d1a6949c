package proxy

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// queueLength is how many packets may be under way in one direction before the
// sender is made to wait.
const queueLength = 4096

// drainWithin is how long the server may take to close a connection that a
// fault has cut after a request.
const drainWithin = 2 * time.Second

// conn is one client's connection. Each direction has a reader, which decides
// the fate of every packet, and a writer, which forwards in order when the time
// has come.
type conn struct {
	p        *Proxy
	client   net.Conn
	done     chan struct{}
	toServer chan item
	toClient chan item

	mu       sync.Mutex
	over     bool
	left     bool      // see gone
	lossy    Direction // see lose
	text     bool      // the client sent a four-letter word or nonsense: no frames from here on
	server   net.Conn
	session  int64
	lastZxid int64
	pending  map[int32][]*Frame // requests by xid, in order
}

// item is something to be written, or the end of the stream if data is nil.
type item struct {
	data []byte
	due  time.Time
	hold <-chan struct{}
	last bool // the client's side ends before data is written: no reply gets there
}

func newConn(p *Proxy, client net.Conn) *conn {
	return &conn{
		p: p, client: client, done: make(chan struct{}), pending: map[int32][]*Frame{},
		toServer: make(chan item, queueLength), toClient: make(chan item, queueLength),
	}
}

// run forwards until the connection is over.
func (c *conn) run() {
	defer func() {
		c.cut()
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		delete(c.p.conns, c)
	}()
	c.p.wg.Go(c.readClient)
	// The proxy dials the server only when there is something to send, and the
	// way is open: so a connection that was begun and given up in a black hole
	// never existed for the server.
	first, ok := c.next(c.toServer, ToServer)
	if !ok || first.data == nil || !c.callServer() {
		return
	}
	c.p.wg.Go(c.readServer)
	c.p.wg.Go(func() { c.write(c.toClient, ToClient, c.client, item{}) })
	c.write(c.toServer, ToServer, c.server, first)
	<-c.done // the server's answers may still be under way
}

func (c *conn) callServer() bool {
	if c.gone() {
		return false
	}
	server, err := net.DialTimeout("tcp", c.p.target, dialWithin)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.left {
		_ = server.Close()
		return false
	}
	c.server = server
	c.p.tally(func(s *Stats) { s.Conns++ })
	return true
}

// cut ends both sides immediately, and reports whether they were not over
// before.
func (c *conn) cut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.over = true
	close(c.done)
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
	return true
}

// lose drops all bytes under way in a direction, and all that come later.
func (c *conn) lose(d Direction) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.server == nil || c.lossy&d == d {
		return false
	}
	c.lossy |= d
	return true
}

func (c *conn) loses(d Direction) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lossy&d != 0
}

// cutClient ends the client's side immediately.
func (c *conn) cutClient() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	_ = c.client.Close()
	c.p.tally(func(s *Stats) { s.Cut++ })
}

// finish lets the server read what it was sent: a plain close with answers
// unread would reset the connection, and the server might lose the request.
func (c *conn) finish() {
	_ = c.server.(*net.TCPConn).CloseWrite()
	_ = c.server.SetReadDeadline(time.Now().Add(drainWithin))
}

// write forwards what is queued, beginning with first if that has data, until
// the end of the stream.
func (c *conn) write(queue <-chan item, d Direction, to net.Conn, first item) {
	for it := first; ; {
		if lost := c.loses(d); lost && it.data != nil {
			c.p.tally(func(s *Stats) { s.Lost++ })
		} else if it.data != nil {
			if it.last {
				c.cutClient()
			}
			c.slow(len(it.data))
			if _, err := to.Write(it.data); err != nil && !c.gone() {
				c.cut()
				return
			}
			c.p.tally(func(s *Stats) {
				s.Passed[d].Packets++
				s.Passed[d].Bytes += len(it.data)
			})
			if it.last {
				c.finish()
			}
		}
		var ok bool
		if it, ok = c.next(queue, d); !ok {
			return
		}
		if it.data == nil {
			if d == ToServer {
				_ = to.(*net.TCPConn).CloseWrite()
			} else {
				c.cut()
			}
			return
		}
	}
}

// slow waits for as long as bytes take at the rate in force.
func (c *conn) slow(bytes int) {
	c.p.mu.Lock()
	rate := c.p.rate
	c.p.mu.Unlock()
	if rate == 0 {
		return
	}
	select {
	case <-time.After(time.Duration(bytes) * time.Second / time.Duration(rate)):
	case <-c.done:
	}
}

// next returns the next item when it may be written, or false if the connection
// is over.
func (c *conn) next(queue <-chan item, d Direction) (it item, ok bool) {
	select {
	case it = <-queue:
	case <-c.done:
		return it, false
	}
	if wait := time.Until(it.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.done:
			return it, false
		}
	}
	if it.hold != nil {
		select {
		case <-it.hold:
		case <-c.done:
			return it, false
		}
	}
	return it, c.passHole(d)
}

// passHole waits while a black hole, or hanging if the server was not called
// yet, keeps the direction closed.
func (c *conn) passHole(d Direction) bool {
	for counted := false; ; {
		c.mu.Lock()
		called, lossy := c.server != nil, c.lossy&d != 0
		c.mu.Unlock()
		c.p.mu.Lock()
		closed, changed := c.p.hole&d != 0 && !lossy || c.p.hang && !called, c.p.changed
		if closed && !counted {
			c.p.stats.Held++
			counted = true
		}
		c.p.mu.Unlock()
		if !closed {
			return true
		}
		select {
		case <-changed:
		case <-c.done:
			return false
		}
	}
}

// gone reports whether the client left before the server was called, or was cut
// off by a fault: then the server's remaining bytes are dropped.
func (c *conn) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// enqueue hands a packet to the writer of its direction, with the latency in
// force now. Writing in order makes a packet with less latency wait for those
// before it.
func (c *conn) enqueue(queue chan<- item, d Direction, it item) {
	c.p.mu.Lock()
	if l, ok := c.p.delay[d]; ok {
		wait := l.base
		if l.jitter > 0 {
			wait += rand.N(l.jitter)
		}
		if due := time.Now().Add(wait); due.After(it.due) {
			it.due = due
		}
		c.p.stats.Delayed++
	}
	c.p.mu.Unlock()
	select {
	case queue <- it:
	case <-c.done:
	}
}

// readPacket reads one packet with its length; textOK allows a four-letter word
// in place of the length.
func readPacket(r io.Reader, textOK bool) (packet []byte, isText bool, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, false, err
	}
	if textOK && !slices.ContainsFunc(head, func(b byte) bool { return b < 'a' || b > 'z' }) {
		return head, true, nil
	}
	const limit = 64 << 20 // beyond any listing; more is nonsense, which is left to the server
	length := binary.BigEndian.Uint32(head)
	if length > limit {
		return head, true, nil
	}
	packet = make([]byte, 4+length)
	copy(packet, head)
	_, err = io.ReadFull(r, packet[4:])
	return packet, false, err
}

// frame puts the length before a body.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
