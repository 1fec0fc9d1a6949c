package proxy

import (
	"io"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/internal/jute"
)

// readClient decides the fate of all the client sends.
func (c *conn) readClient() {
	defer c.enqueue(c.toServer, ToServer, item{})
	for first := true; !c.p.raw; first = false {
		packet, isText, err := readPacket(c.client, first)
		if err != nil {
			c.clientLeft()
			return
		}
		if isText {
			c.mu.Lock()
			c.text = true
			c.mu.Unlock()
			c.enqueue(c.toServer, ToServer, item{data: packet})
			break
		}
		f := &Frame{Op: OpConnect, Body: packet[4:]}
		if !first {
			f = parseRequest(packet[4:])
		}
		if !c.request(f) {
			return
		}
	}
	c.copy(c.client, c.toServer, ToServer)
	c.clientLeft()
}

// clientLeft notes that the client has closed its side before the server was
// called.
func (c *conn) clientLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil || c.left {
		return
	}
	c.left = true
	c.p.tally(func(s *Stats) { s.GivenUp++ })
}

// request handles one request and reports whether the connection goes on.
func (c *conn) request(f *Frame) bool {
	c.mu.Lock()
	f.Session = c.session
	lastZxid := c.lastZxid
	c.mu.Unlock()
	what := c.p.decide(f, lastZxid)
	if what.answer != nil {
		c.enqueue(c.toClient, ToClient, item{data: frame(what.answer)})
	}
	if !what.drop {
		c.mu.Lock()
		c.pending[f.Xid] = append(c.pending[f.Xid], f)
		c.mu.Unlock()
		c.p.mu.Lock()
		c.p.requests[f.Op]++
		c.p.mu.Unlock()
	}
	return c.carryOut(what, f, c.toServer, ToServer)
}

// readServer decides the fate of all the server sends.
func (c *conn) readServer() {
	defer c.enqueue(c.toClient, ToClient, item{})
	for first := true; !c.unframed(); first = false {
		packet, odd, err := readPacket(c.server, false)
		if len(packet) > 0 && (odd || c.unframed()) {
			c.enqueue(c.toClient, ToClient, item{data: packet})
			break
		}
		if err != nil || !c.reply(packet[4:], first) {
			return
		}
	}
	c.copy(c.server, c.toClient, ToClient)
}

// unframed reports whether bytes are forwarded without parsing.
func (c *conn) unframed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.p.raw || c.text
}

// reply handles one packet of the server and reports whether the connection
// goes on.
func (c *conn) reply(body []byte, first bool) bool {
	f := &Frame{Op: OpConnect, Reply: true, Body: body}
	c.mu.Lock()
	if first {
		c.connected(f)
	} else {
		f = parseReply(body)
		c.match(f)
	}
	f.Session = c.session
	lastZxid := c.lastZxid
	c.mu.Unlock()
	return c.carryOut(c.p.decide(f, lastZxid), f, c.toClient, ToClient)
}

// connected notes the session that a connect reply gives. The connection is
// locked.
func (c *conn) connected(f *Frame) {
	d := jute.Decoder{Rest: f.Body}
	d.Take(8) // protocol version, timeout
	delete(c.pending, 0)
	if id := d.Int64(); id != 0 {
		c.session = id
	}
}

// match finds the request that a reply answers. The connection is locked.
func (c *conn) match(f *Frame) {
	if f.Xid == xidNotification {
		return
	}
	c.lastZxid = max(c.lastZxid, f.Zxid)
	waiting := c.pending[f.Xid]
	if len(waiting) == 0 {
		f.Op = OpConnect - 1 // the reply to no known request: matches no opcode
		return
	}
	f.Op, f.Paths = waiting[0].Op, waiting[0].Paths
	c.pending[f.Xid] = waiting[1:]
	if len(waiting) == 1 {
		delete(c.pending, f.Xid)
	}
}

// carryOut does to a packet what was decided, and reports whether the
// connection goes on.
func (c *conn) carryOut(what fate, f *Frame, queue chan<- item, d Direction) bool {
	if !what.drop {
		it := item{data: frame(f.Body), hold: what.hold, last: what.cutAfter}
		if what.delay > 0 {
			it.due = time.Now().Add(what.delay)
		}
		c.enqueue(queue, d, it)
	}
	if what.cut && c.cut() {
		c.p.tally(func(s *Stats) { s.Cut++ })
	}
	return !what.cut && !what.cutAfter
}

// decide asks the rules about a packet.
func (p *Proxy) decide(f *Frame, lastZxid int64) fate {
	p.mu.Lock()
	rules := slices.Clone(p.rules)
	p.mu.Unlock()
	for _, r := range rules {
		if r.takes(f) {
			return r.fault.Do.do(f, lastZxid)
		}
	}
	return fate{}
}

// copy forwards without looking.
func (c *conn) copy(from io.Reader, queue chan<- item, d Direction) {
	for {
		chunk := make([]byte, 16<<10)
		n, err := from.Read(chunk)
		if n > 0 {
			c.enqueue(queue, d, item{data: chunk[:n]})
		}
		if err != nil {
			return
		}
	}
}
