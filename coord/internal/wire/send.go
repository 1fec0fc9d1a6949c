package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// Ask queues a request for the writer; fields appends the request's fields. It
// does not block, and requests in a row travel together. Unless it returns an
// error, the request gets its answer.
func (c *Conn) Ask(r Request, fields func(b []byte) []byte) error {
	c.mu.Lock()
	if c.lost {
		c.mu.Unlock()
		return ErrConnection
	}
	number := int32(c.Asked.Add(1) % (1 << 30))
	switch r.xid = 1 + number; {
	case r.Op == OpAuth:
		r.xid = xidAuth
	case r.Op == OpClose:
		r.xid = xidClose
	case r.Urgent:
		r.xid = xidUrgent - number
	}
	begin := len(c.queue)
	b := append(c.queue, make([]byte, lengthSize)...)
	c.queue = fields(appendInt32(appendInt32(b, r.xid), int32(r.Op)))
	r.Size = len(c.queue) - begin - lengthSize
	err := c.Sizes.admit(r)
	if err == nil && r.Yields {
		err = c.bears(r.Size)
	}
	if err != nil {
		c.queue = c.queue[:begin]
		c.mu.Unlock()
		return err
	}
	binary.BigEndian.PutUint32(c.queue[begin:], uint32(r.Size))
	c.asked = append(c.asked, r)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return nil
}

// Send writes the queued requests until the connection ends: those that were
// queued meanwhile go together.
func (c *Conn) Send() {
	for {
		select {
		case <-c.more:
			c.flush()
		case <-c.over:
			return
		}
	}
}

// keptBuffer is how large a buffer may be that is used again.
const keptBuffer = 16 << 10

// keptRequests is how many requests a list keeps room for once it is empty:
// thousands that came at once need not come again.
const keptRequests = 64

func emptied(list []Request) []Request {
	if cap(list) > keptRequests {
		return nil
	}
	clear(list)
	return list[:0]
}

func (c *Conn) flush() {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.mu.Lock()
	packets := c.queue
	c.queue, c.spare = c.spare[:0], nil
	c.begin(c.asked...)
	c.asked = emptied(c.asked)
	c.mu.Unlock()
	if len(packets) > 0 {
		c.transmit(packets)
	}
	if cap(packets) <= keptBuffer {
		c.mu.Lock()
		c.spare = packets
		c.mu.Unlock()
	}
}

// Write sends a packet of the library's. It never reports an error: the client
// library would wedge on it. It closes the connection instead, and the reading
// side ends.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.mu.Lock()
	packet := p
	if c.greeted.IsZero() {
		packet = c.greeting(p)
		c.greeted, c.began = time.Now(), c.Clock.Now()
		c.applyDeadline()
	} else {
		c.begin(Request{xid: int32At(p, 4), Op: OpCode(int32At(p, 8)), Size: len(p) - lengthSize})
	}
	c.mu.Unlock()
	c.transmit(packet)
	return len(p), nil
}

// greeting is the library's handshake, with the newest change that the session
// knows of, and the library does not: a server that lags behind it refuses the
// session.
func (c *Conn) greeting(p []byte) []byte {
	p = bytes.Clone(p)
	if int64At(p, 8) < c.Seen {
		binary.BigEndian.PutUint64(p[8:], uint64(c.Seen))
	}
	return p
}

// transmit writes packets that were noted; c.writing is taken. If the server
// takes nothing, the reading side closes the connection: the packets count as
// unanswered from before they are written. The library itself bounds the write
// of its handshake, while it does not read yet.
func (c *Conn) transmit(packets []byte) {
	if _, err := c.Conn.Write(packets); err != nil {
		if !errors.Is(err, net.ErrClosed) { // why it was closed is known already
			c.mu.Lock()
			c.broken = err
			c.mu.Unlock()
		}
		_ = c.Conn.Close()
	}
}

// begin notes that requests are sent, before they are: the time is no later
// than the moment at which a server could have received them; c.mu is held.
func (c *Conn) begin(all ...Request) {
	now := time.Now()
	for _, r := range all {
		r.sent = now
		if c.heard(r) {
			r.moment = c.Clock.Now()
		}
		c.load.sent(r)
		c.pending = append(c.pending, r)
	}
	c.applyDeadline()
}

// heard reports whether to time a request for the trust window. Reading the
// clock is a system call, so we time every transaction, since two in a row open
// a window, but only one read and one write per T/100. The answer to a
// credential shows nothing: ZooKeeperServer.processPacket gives it before
// submitRequest, which notes that the session was heard of.
func (c *Conn) heard(r Request) bool {
	last := &c.read
	if r.Op.isWrite() {
		last = &c.wrote
	}
	if r.Op == OpAuth || r.Op != OpMulti && r.sent.Sub(*last) < c.stall*stallShare/100 {
		return false
	}
	*last = r.sent
	return true
}
