package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/window"
)

// Tap receives what a connection observes; a session is one. The calls come
// from the client library's reading goroutine; Failed also from the one that
// closes the connection.
type Tap interface {
	// Established judges the reply to a handshake that was sent at sent, a
	// moment of the session's clock. An error refuses the connection.
	Established(w Welcome, sent time.Time) error
	// Opened notes that requests can be sent. What is asked during the call
	// goes ahead of everything else.
	Opened(c *Conn, w Welcome)
	// Admits judges the size of a request. An error keeps it from being sent.
	Admits(r Request) error
	// Answered notes the reply to a request, before the request is told.
	Answered(r Request, zxid int64, err error)
	// Timed notes when a request was sent that a server has acknowledged: the
	// ensemble has, if proves.
	Timed(sent time.Time, proves bool)
	// Fired notes an event of a watch.
	Fired(event int32, path string)
	// Refused notes that a server has closed the connection with these requests
	// unanswered.
	Refused(pending []Request)
	// Failed notes that the connection is gone, or was never open.
	Failed(c *Conn, open bool, err error)
	// Ended notes that nothing more is read: the connection's watches are lost.
	Ended()
}

// Request is a request on its way. Read takes the fields of a reply without an
// error, and nil if no caller wants them; they are only valid during the call.
// Tell is called once, by a goroutine that must not be held up; nil if nobody
// waits.
type Request struct {
	Op     OpCode
	Urgent bool // a busy server does not hold it back
	Trial  bool // of the size that servers accept
	Size   int  // of its packet
	Read   func(*Decoder)
	Tell   func(zxid int64, err error)

	xid    int32
	sent   time.Time
	moment time.Time // the same by the session's clock, or zero: the window need not know
}

// Options are what a connection is to know.
type Options struct {
	Clock   window.Clock
	Limit   time.Duration  // for the handshake's reply
	Patient bool           // the first reply may take T: the server may be busy
	Seen    int64          // the newest change that the session knows of
	Asked   *atomic.Uint32 // requests of the session so far
}

// stallShare of T is the limit for the reply to any request but a handshake.
const stallShare = 2

// Conn is the net.Conn that the client library talks through: it shakes hands
// and pings. All other requests are asked ([Conn.Ask]), and their replies kept
// from the library. The library writes each packet with one Write, and one
// goroutine of it reads.
type Conn struct {
	net.Conn
	Options
	tap Tap
	in  *bufio.Reader

	writing chan struct{} // has room for one: packets go out in the order they are noted

	frame []byte // the packet read last
	ready []byte // the handshake's reply, as far as the library has not taken it
	end   error  // what a Read says then
	once  sync.Once
	over  chan struct{} // closed when the connection has ended
	more  chan struct{} // wakes the writer of what is asked

	mu       sync.Mutex
	greeted  time.Time     // when the handshake was sent
	began    time.Time     // the same by the session's clock
	open     bool          // the handshake was answered
	stall    time.Duration // limit for the reply to any request after it
	broken   error         // why a packet could not be written
	pending  []Request     // sent and not answered, in the order they were sent
	read     time.Time     // when the last one was sent that the window hears of
	wrote    time.Time     // the same of writes
	progress time.Time     // when the server last came nearer to the reply to the oldest request
	whole    time.Time     // until when the packet that is being read must have come, or zero
	lost     bool          // nothing can be asked any more
	asked    []Request     // not sent yet
	queue    []byte        // their packets
	spare    []byte        // for the next
}

// New returns a connection to a server. Its owner runs [Conn.Send].
func New(raw net.Conn, tap Tap, o Options) *Conn {
	return &Conn{
		Conn: raw, Options: o, tap: tap, in: bufio.NewReaderSize(raw, 16<<10),
		writing: make(chan struct{}, 1), over: make(chan struct{}), more: make(chan struct{}, 1),
	}
}

// Ask queues a request, whose fields fields appends, for the writer. It does
// not block: what is asked in a row travels together. Unless it returns an
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
	if err := c.tap.Admits(r); err != nil {
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

// Send writes what is asked, as long as there is a connection: all that was
// queued meanwhile together.
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
const keptBuffer = 64 << 10

func (c *Conn) flush() {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.mu.Lock()
	packets, limit := c.queue, c.stall
	c.queue, c.spare = c.spare[:0], nil
	c.begin(c.asked...)
	clear(c.asked)
	c.asked = c.asked[:0]
	c.mu.Unlock()
	if len(packets) > 0 {
		c.transmit(packets, limit)
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
	packet, limit := p, c.stall
	if c.greeted.IsZero() {
		packet, limit = c.greeting(p), c.Limit
		c.greeted, c.began = time.Now(), c.Clock.Now()
		c.applyDeadline()
	} else {
		c.begin(Request{xid: int32At(p, 4), Op: OpCode(int32At(p, 8)), Size: len(p) - lengthSize})
	}
	c.mu.Unlock()
	c.transmit(packet, limit)
	return len(p), nil
}

// greeting is the library's handshake with the newest change that the session
// knows of, of which the library knows nothing: a server that lags behind it
// refuses the session.
func (c *Conn) greeting(p []byte) []byte {
	p = bytes.Clone(p)
	if int64At(p, 8) < c.Seen {
		binary.BigEndian.PutUint64(p[8:], uint64(c.Seen))
	}
	return p
}

// most is how much is written at a time: what takes long, but goes on, is no
// sign of a hung server.
const most = 64 << 10

// transmit writes packets that were noted; c.writing is taken.
func (c *Conn) transmit(packets []byte, limit time.Duration) {
	for piece := range slices.Chunk(packets, most) {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(limit))
		if _, err := c.Conn.Write(piece); err != nil {
			if !errors.Is(err, net.ErrClosed) { // why it was closed is known already
				c.mu.Lock()
				c.broken = err
				c.mu.Unlock()
			}
			_ = c.Conn.Close()
			return
		}
	}
}

// SetWriteDeadline does nothing: the library would take back the deadline of a
// packet that is not its own.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing: the library waits for replies that it never
// gets. Its pings, which are noted, have the limit of any request.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// begin notes that requests are sent, before they are: the time is no later
// than the moment at which a server could have received them; c.mu is held.
func (c *Conn) begin(all ...Request) {
	now := time.Now()
	for _, r := range all {
		if r.sent = now; c.heard(r) {
			r.moment = c.Clock.Now()
		}
		c.pending = append(c.pending, r)
	}
	c.applyDeadline()
}

// heard reports whether to time a request for the trust window. Reading the
// clock is a system call, so we time every transaction, since two in a row open
// a window, but only one read and one write per T/100.
func (c *Conn) heard(r Request) bool {
	last := &c.read
	if r.Op.isWrite() {
		last = &c.wrote
	}
	if r.Op != OpMulti && r.sent.Sub(*last) < c.stall*stallShare/100 {
		return false
	}
	*last = r.sent
	return true
}

// applyDeadline sets the read deadline: the limit of the handshake, or that for
// the oldest unanswered request. The second counts from the server's last sign
// of progress: bytes of a large reply that flow, and replies to what was asked
// before. A request that has to wait for many others is no sign of a hung
// server.
func (c *Conn) applyDeadline() {
	at := time.Time{}
	switch {
	case !c.open && !c.greeted.IsZero():
		at = c.greeted.Add(c.Limit)
	case len(c.pending) > 0:
		from := c.pending[0].sent
		if c.progress.After(from) {
			from = c.progress
		}
		at = from.Add(c.stall)
		if c.Patient {
			at = from.Add(2 * c.stall)
		}
	}
	if !c.whole.IsZero() && (at.IsZero() || c.whole.Before(at)) {
		at = c.whole
	}
	_ = c.Conn.SetReadDeadline(at)
}

// Read gives the library the reply to its handshake, and then only the end of
// the connection.
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		frame, err := c.readFrame()
		if err == nil {
			c.ready, err = c.examine(frame)
		}
		if err != nil {
			c.stop(err)
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// stop ends the connection. The order matters: the session must know that the
// connection is gone before those who wait for its watches wake and ask it.
func (c *Conn) stop(err error) {
	_ = c.Conn.Close()
	c.mu.Lock()
	open := c.open
	if c.broken != nil {
		err = c.broken
	}
	if open && hungUp(err) {
		c.tap.Refused(c.pending)
	}
	c.mu.Unlock()
	if !open {
		err = fmt.Errorf("%v accepts connections and does not open a session: %w", c.RemoteAddr(), err)
	}
	c.lose(err)
	c.ready, c.end = nil, err
	c.tap.Ended()
}

// hungUp reports whether a connection has ended because the server closed it.
func hungUp(err error) bool {
	return !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// lose reports, once, that the connection is gone: first to the session, which
// then waits for the next one before it asks again, then to the callers that
// have asked.
func (c *Conn) lose(err error) {
	c.once.Do(func() {
		c.mu.Lock()
		open := c.open
		c.mu.Unlock()
		c.tap.Failed(c, open, err)
		c.mu.Lock()
		c.lost = true
		orphans := append(c.pending, c.asked...)
		c.pending, c.asked, c.queue = nil, nil, nil
		c.mu.Unlock()
		close(c.over)
		for _, r := range orphans {
			if r.Tell != nil {
				r.Tell(0, ErrConnection)
			}
		}
	})
}

// Drop ends the connection; the reading side tells.
func (c *Conn) Drop() { _ = c.Conn.Close() }

// Close is how the library ends the connection, when it has stopped reading.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.lose(net.ErrClosed)
	return err
}

// CloseSession asks the server to end the session, and waits until it has, or
// has closed the connection, but at most for limit.
func (c *Conn) CloseSession(limit time.Duration) {
	timer := time.AfterFunc(limit, c.Drop)
	defer timer.Stop()
	if c.Ask(Request{Op: OpClose}, Nothing) == nil {
		<-c.over
	}
}
