package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A packet must be whole within T of its first byte, and each tenth of it that
// comes gives the server another T. So a wrong length, behind which other
// packets go on, does not hold the connection for long.
const flow = 10

// readFrame reads a packet, whole, with the length before it. It takes memory
// for the bytes that have come, not for an announced length. The next call may
// use its memory again.
func (c *Conn) readFrame() ([]byte, error) {
	head, err := c.in.Peek(lengthSize)
	if err != nil {
		return nil, err
	}
	n, begun := int(int32At(head, 0)), time.Now()
	limit, timeout := maxFrame, c.stall*stallShare // written by this goroutine only
	if !c.open {
		limit, timeout = maxHandshake, c.Limit
	}
	if n < 0 || n > limit {
		return nil, fmt.Errorf("a frame of %d bytes is not ZooKeeper's protocol", n)
	}
	n += lengthSize
	if cap(c.frame) > keptBuffer {
		c.frame = nil
	}
	frame := c.frame[:0]
	for len(frame) < n {
		frame = slices.Grow(frame, min(n-len(frame), max(len(frame), c.in.Size())))
		m, err := c.in.Read(frame[len(frame):min(n, cap(frame))])
		frame = frame[:len(frame)+m]
		if err != nil {
			return nil, err
		}
		if m == 0 {
			return nil, io.ErrNoProgress
		}
		if on := len(frame) < n; on || !c.whole.IsZero() {
			c.flows(on, begun.Add(timeout*time.Duration(1+flow*len(frame)/n)))
		}
	}
	c.frame = frame
	return frame, nil
}

// flows notes that a part of a packet has come, and until when the rest must
// have come.
func (c *Conn) flows(on bool, whole time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole = time.Time{}
	if on {
		c.progress, c.whole = time.Now(), whole
	}
	c.applyDeadline()
}

// examine notes what a packet says and returns what the library gets of it.
func (c *Conn) examine(frame []byte) ([]byte, error) {
	body := frame[lengthSize:]
	if !c.open { // written by this goroutine only
		return frame, c.examineHandshake(body)
	}
	if len(body) < replyHeader {
		return nil, fmt.Errorf("a reply of %d bytes is not ZooKeeper's protocol", len(body))
	}
	d := &c.reply
	*d = Decoder{b: body}
	xid, zxid, code := d.int32(), d.int64(), d.int32()
	switch xid {
	case xidClose:
		return nil, io.EOF // which a server sends next
	case xidNotification:
		return nil, c.fired(d)
	}
	r, known := c.match(xid)
	if !known {
		return nil, nil
	}
	if r.Caller != nil && code == 0 {
		r.Caller.Read(d)
	}
	if d.malformed {
		c.unmatch(r)
		return nil, fmt.Errorf("a reply of %d bytes to a request of kind %d is not ZooKeeper's protocol", len(body), r.Op)
	}
	c.Sizes.answered(r.Size)
	code = cmp.Or(code, d.away)
	err := errorOf(code)
	if codes[code].away {
		c.unmatch(r)
		return nil, Refusal{err}
	}
	c.tap.Answered(zxid, err, r.moment, r.Op.isWrite() && committed(zxid, code))
	if r.Caller != nil {
		r.Caller.Tell(zxid, err)
	}
	return nil, nil
}

var errHandshake = errors.New("the server's handshake is not ZooKeeper's")

// examineHandshake reads the reply to a handshake.
func (c *Conn) examineHandshake(body []byte) error {
	d := Decoder{b: body}
	w := d.welcome()
	if d.malformed || w.ID != 0 && w.Timeout <= 0 {
		return errHandshake
	}
	c.mu.Lock()
	began := c.began
	c.mu.Unlock()
	if err := c.tap.Established(w, began); err != nil {
		return err
	}
	c.mu.Lock()
	c.open, c.stall = true, w.Timeout/stallShare
	c.applyDeadline()
	c.mu.Unlock()
	c.tap.Opened(c, w)
	return nil
}

// match finds the request that a reply belongs to, and takes it off the list.
// Replies come in the order of the requests, so it is nearly always the first.
func (c *Conn) match(xid int32) (Request, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.pending {
		if r.xid == xid {
			c.load.flight -= r.Size
			if i == 0 { // otherwise the oldest request was passed over
				c.progress = time.Now()
				c.answered(r, c.progress)
			}
			if c.load.waiting > 0 {
				select {
				case c.load.eased <- struct{}{}:
				default:
				}
			}
			c.Patient = false
			if c.pending = slices.Delete(c.pending, i, i+1); len(c.pending) == 0 {
				c.pending = emptied(c.pending)
			}
			c.applyDeadline()
			return r, true
		}
	}
	return Request{}, false
}

// unmatch puts a request back whose reply ends the connection: its outcome is
// not known, like the outcome of all requests under way then.
func (c *Conn) unmatch(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = slices.Insert(c.pending, 0, r)
}

// fired reads a notification.
func (c *Conn) fired(d *Decoder) error {
	event, _, path := d.int32(), d.int32(), d.string()
	if d.malformed {
		return errors.New("a notification that is not ZooKeeper's protocol")
	}
	c.tap.Fired(zk.EventType(event), path)
	return nil
}
