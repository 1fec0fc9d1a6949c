package zkembed

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	maxBacklog = 4 << 20          // bytes that are queued before the client is made to wait
	maxUnread  = 32 << 20         // unread bytes after which a connection is cut
	lastWords  = 5 * time.Second  // how long a closing connection tries to deliver one packet
	noSession  = 10 * time.Second // how long a client may pause before it asks for a session
)

// conn is one client connection: a goroutine reads, one processes requests
// in order, one writes. Fields that say so are guarded by Server.mu.
type conn struct {
	s       *Server
	nc      net.Conn
	remote  string
	in, out *queue
	since   time.Time

	dead chan struct{} // closed when the connection has ended
	quit chan struct{} // closed when no more is processed; the queue is still delivered
	once sync.Once
	last sync.Once

	asked <-chan struct{} // the processing goroutine's: closed when a follower has the last answer

	session *session   // mu; set once by the processing goroutine
	claimed int64      // mu; the session id that a connect request named
	ids     []identity // mu
	proving exchange   // mu
	view    *view      // mu
	closing bool       // mu; has ended its session, and hears so before the connection ends
	recv    int64      // mu; packets
	sent    int64      // mu
	heard   time.Time  // mu; when the last request came; zero: none has
}

// kill ends the connection immediately; its queues are lost. It reports whether
// the connection had still been there.
func (c *conn) kill() (was bool) {
	c.finish()
	c.once.Do(func() {
		was = true
		close(c.dead)
		_ = c.nc.Close()
	})
	return was
}

// finish ends the connection when what is queued has been delivered.
func (c *conn) finish() { c.last.Do(func() { close(c.quit) }) }

func (c *conn) finished() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

func (c *conn) serve() {
	if !c.shakeHands() {
		c.kill()
		return
	}
	var wg sync.WaitGroup
	written := make(chan struct{})
	wg.Go(c.read)
	wg.Go(func() {
		defer close(written)
		c.write()
	})
	c.process()
	c.finish()
	c.retire()
	c.out.close()
	c.hurry() // a Write may already wait for a client that does not read
	<-written
	c.kill()
	wg.Wait()
}

// x509Scheme is the scheme of the identities that certificates give.
const x509Scheme = "x509"

// secure reports whether the connection speaks TLS.
func (c *conn) secure() bool {
	_, ok := c.nc.(*tls.Conn)
	return ok
}

// shakeHands is TLS's handshake, which gives the connection the identity of the
// client's certificate.
func (c *conn) shakeHands() bool {
	secure, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	_ = c.nc.SetDeadline(time.Now().Add(noSession))
	if err := secure.Handshake(); err != nil {
		c.s.cfg.log.Debug("no handshake", "client", c.remote, "err", err)
		return false
	}
	_ = c.nc.SetDeadline(time.Time{})
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if certs := secure.ConnectionState().PeerCertificates; len(certs) > 0 {
		c.ids = append(c.ids, identity{x509Scheme, certs[0].Subject.String()})
	}
	return true
}

// hurry gives the client lastWords to read what is being written. The time
// starts with the write: a late reply or a partition may have held it up.
func (c *conn) hurry() { _ = c.nc.SetWriteDeadline(time.Now().Add(lastWords)) }

// retire removes the connection from its session, and its watches.
func (c *conn) retire() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.view.watches.drop(c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
}

// send queues a packet; its first four bytes are room for the length. Requests
// wait until the client has read enough (see process), events do not.
func (c *conn) send(b []byte, due time.Time) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	c.sent++
	it := item{b: b, due: due}
	if c.out.push(it)-it.size() > maxUnread { // a long answer to a client that reads is no backlog
		c.kill()
	}
}

// read passes packets on until the client closes or sends none. It keeps
// reading while the server is cut off, as a client's kernel keeps accepting.
func (c *conn) read() {
	defer c.in.close()
	from := &hurried{nc: c.nc, pause: noSession}
	r := bufio.NewReader(from)
	for first := true; c.in.wait(maxBacklog, c.dead); first = false {
		it, err := readPacket(r, first, c.s.cfg.maxPacket)
		if err != nil {
			return
		}
		c.in.push(it)
		if first { // a session ends by itself, and its connection with it
			from.pause = 0
			_ = c.nc.SetReadDeadline(time.Time{})
		}
	}
}

// hurried reads from a client, and limits its pauses unless limit is 0.
type hurried struct {
	nc    net.Conn
	pause time.Duration
}

func (h *hurried) Read(b []byte) (int, error) {
	if h.pause > 0 {
		_ = h.nc.SetReadDeadline(time.Now().Add(h.pause))
	}
	return h.nc.Read(b)
}

var errPacketSize = errors.New("zkembed: packet length out of range")

// readPacket reads one length-prefixed packet, or a four-letter word where a
// connection may begin with one.
func readPacket(r io.Reader, first bool, limit int) (item, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return item{}, err
	}
	if _, ok := fourLetterWords[string(head[:])]; ok && first {
		return item{b: head[:], fourWord: true}, nil
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || int(n) > limit {
		return item{}, errPacketSize
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return item{b: b}, err
}

// write delivers what is queued. A broken pipe does not end the connection
// by itself: requests that arrived before it broke are still carried out.
func (c *conn) write() {
	broken := false
	for {
		it, ok := c.out.pop(c.dead)
		if !ok || !c.sleep(time.Until(it.due), c.dead) ||
			!c.await(c.dead, ToClient) {
			return
		}
		if broken {
			continue
		}
		if c.finished() {
			c.hurry()
		}
		if _, err := c.nc.Write(it.b); err != nil {
			broken = true
			_ = c.nc.Close()
		}
	}
}

// process carries out the client's packets, one at a time.
func (c *conn) process() {
	for c.out.wait(maxBacklog, c.quit) {
		it, ok := c.in.pop(c.quit)
		if !ok || !c.await(c.quit, ToServer) || !c.handle(it) {
			return
		}
	}
}

func (c *conn) handle(it item) bool {
	switch {
	case c.finished():
		return false
	case it.fourWord:
		c.out.push(item{b: []byte(c.s.fourLetter(string(it.b)))})
		return false
	case c.session == nil:
		return c.connect(it.b)
	}
	return c.request(it.b)
}

// await waits until no partition cuts the direction. It returns false when end
// is closed first.
func (c *conn) await(end <-chan struct{}, d Direction) bool {
	free := c.lockWhenFree(end, d)
	if free {
		c.s.mu.Unlock()
	}
	return free
}

// lockWhenFree is await, but keeps mu locked if it returns true: the condition
// still holds when the caller acts.
func (c *conn) lockWhenFree(end <-chan struct{}, d Direction) bool {
	for again := false; ; again = true {
		c.s.mu.Lock()
		if !c.s.cut(c, d, again) {
			return true
		}
		changed := c.s.changed
		c.s.mu.Unlock()
		select {
		case <-changed:
		case <-end:
			return false
		}
	}
}

// sleep returns false when end is closed first.
func (c *conn) sleep(d time.Duration, end <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-end:
		return false
	}
}

// connect answers a connection's first packet: it starts a session, takes up
// an old one, or turns the client away.
func (c *conn) connect(b []byte) bool {
	d := decode(b)
	d.Int32() // protocol version
	seen, timeout, id, passwd := d.Int64(), d.Int32(), d.Int64(), d.Buffer()
	// Java and Kazoo send a readOnly byte and want one back; go-zookeeper
	// does neither.
	readOnly := len(d.Rest) > 0
	if d.Err != nil {
		return false
	}
	s := c.s
	s.mu.Lock()
	c.claimed = id
	s.mu.Unlock()
	// Followers may come and go while it waits: the session's view is looked up
	// afterwards.
	if !c.lockWhenFree(c.quit, ToServer) {
		return false
	}
	v := s.viewFor(id)
	if c.finished() || seen > v.tree.zxid || v.follower != nil && v.follower.out {
		s.mu.Unlock()
		return false
	}
	c.view = v
	return c.ask(v.follower, func() func() bool {
		var sess *session
		if id == 0 {
			sess = s.newSession(timeout)
		} else {
			sess = s.resume(id, passwd, timeout)
		}
		if sess != nil {
			sess.server = c.view
		}
		return func() bool {
			if sess != nil && !c.finished() {
				sess.take(c)
			}
			c.sendConnected(sess, readOnly)
			return sess != nil
		}
	}) && c.caughtUp()
}

// take makes a connection the session's, and ends the one before. mu is held.
func (sess *session) take(c *conn) {
	sess.cutOff()
	c.session, sess.conn = sess, c
}

// cutOff ends the session's connection, if it has one. mu is held.
func (sess *session) cutOff() {
	if sess.conn != nil {
		sess.conn.kill()
	}
}

func (c *conn) sendConnected(sess *session, readOnly bool) {
	if sess == nil {
		sess = &session{} // zeros turn the client away
	}
	e := make(encoder, 4, 48).int(0).int(int32(sess.timeout / time.Millisecond)).long(sess.id).buffer(sess.passwd[:])
	if readOnly {
		e = e.bool(false)
	}
	c.send(e, time.Time{})
}
