package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/window"
)

// Tap receives what a connection observes; a session is one. The calls come
// from the client library's reading goroutine; Failed may come from the one
// that closes the connection.
type Tap interface {
	// Established judges the reply to a handshake that was sent at sent, a
	// moment of the session's clock. An error refuses the connection.
	Established(w Welcome, sent time.Time) error
	// Opened notes that requests can be sent. Requests made during the call go
	// ahead of all others.
	Opened(c *Conn, w Welcome)
	// Answered notes the reply to a request, before its caller is told. sent is
	// when it was sent, by the session's clock, or zero if the window need not
	// know. proves means that the ensemble itself has acknowledged the request.
	Answered(zxid int64, err error, sent time.Time, proves bool)
	// Fired notes an event of a watch.
	Fired(event zk.EventType, path string)
	// Failed notes, once, that the connection is gone, and its watches with it,
	// or that it was never open.
	Failed(c *Conn, open bool, err error)
}

// Request is a request on its way.
type Request struct {
	Op     OpCode
	Urgent bool   // a busy server does not hold it back
	Trial  bool   // it tests a size that servers may refuse: see [Sizes] and [load]
	Yields bool   // it is not sent if the link cannot carry it: see [load]
	Size   int    // of its packet
	Caller Caller // nil if nobody waits

	xid    int32
	sent   time.Time
	moment time.Time // the same by the session's clock, or zero
}

// Caller waits for the answer to a request. Its methods must not block: the
// goroutine that reads calls them.
type Caller interface {
	// Read takes the fields of a reply without an error, which are only valid
	// during the call.
	Read(d *Decoder)
	// Tell is called once, after Read.
	Tell(zxid int64, err error)
}

// Call is a [Caller] that keeps the answer.
type Call[T any] struct {
	Fields func(*Decoder) T // reads the answer's; nil if none are wanted
	Told   func(err error)  // called before Done is closed; may be nil
	Done   chan struct{}    // nil if nobody waits

	Value T
	Zxid  int64
	Err   error
}

// Read keeps the fields.
func (c *Call[T]) Read(d *Decoder) {
	if c.Fields != nil {
		c.Value = c.Fields(d)
	}
}

// Tell ends the call.
func (c *Call[T]) Tell(zxid int64, err error) {
	c.Zxid, c.Err = zxid, err
	if c.Told != nil {
		c.Told(err)
	}
	if c.Done != nil {
		close(c.Done)
	}
}

// Options configure a connection.
type Options struct {
	Clock   window.Clock
	Limit   time.Duration  // for the handshake's reply
	Patient bool           // the first reply may take T: the server may be busy
	Seen    int64          // the newest change that the session knows of
	Asked   *atomic.Uint32 // requests of the session so far
	Sizes   *Sizes
	// Spare returns for how long a single request may take the connection up.
	// It may be nil.
	Spare func() time.Duration
}

// stallShare of T is the limit for the reply to any request but a handshake.
const stallShare = 2

// Conn is the net.Conn that the client library talks through: it shakes hands
// and pings. All other requests are asked ([Conn.Ask]), and their replies kept
// from the library. The library writes each packet with one Write, and reads in
// one goroutine.
type Conn struct {
	net.Conn
	Options
	tap Tap
	in  *bufio.Reader

	writing chan struct{} // has room for one: packets go out in the order they are noted

	frame []byte // the packet read last
	reply Decoder
	ready []byte // the handshake's reply, as far as the library has not taken it
	end   error  // what Read returns after that
	once  sync.Once
	over  chan struct{} // closed when the connection has ended
	more  chan struct{} // wakes the writer of what is asked

	mu       sync.Mutex
	greeted  time.Time     // when the handshake was sent
	began    time.Time     // the same by the session's clock
	open     bool          // the handshake was answered
	stall    time.Duration // limit for the reply to any later request
	broken   error         // why a packet could not be written
	pending  []Request     // sent and not answered, in the order they were sent
	read     time.Time     // when the last read that the window needs was sent
	wrote    time.Time     // the same for writes
	progress time.Time     // when the server last came nearer to the reply to the oldest request
	whole    time.Time     // when the packet that is being read must have come, or zero
	lost     bool          // nothing can be asked any more
	asked    []Request     // not sent yet
	queue    []byte        // their packets
	spare    []byte        // the memory for the next queue
	load     load
}

// New returns a connection to a server. Its owner runs [Conn.Send].
func New(raw net.Conn, tap Tap, o Options) *Conn {
	return &Conn{
		Conn: raw, Options: o, tap: tap, in: bufio.NewReaderSize(raw, 16<<10),
		writing: make(chan struct{}, 1), over: make(chan struct{}), more: make(chan struct{}, 1), load: newLoad(),
	}
}

// SetReadDeadline does nothing: the library waits for replies that it never
// gets. Its pings, which are noted, have the limit of any request.
func (c *Conn) SetReadDeadline(time.Time) error { return nil }

// Unanswered returns for how long the server has owed a reply without progress
// towards it.
func (c *Conn) Unanswered() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return 0
	}
	from := c.pending[0].sent
	if c.progress.After(from) {
		from = c.progress
	}
	return time.Since(from)
}

// applyDeadline sets the read deadline: the limit of the handshake, or that for
// the oldest unanswered request. The second counts from the server's last sign
// of progress: bytes of a large reply that flow, and replies to earlier
// requests. A request that has to wait for many others is no sign of a hung
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

// stop ends the connection.
func (c *Conn) stop(err error) {
	_ = c.Conn.Close()
	c.mu.Lock()
	open := c.open
	if c.broken != nil {
		err = c.broken
	}
	c.mu.Unlock()
	if !open {
		err = fmt.Errorf("%v accepts connections and does not open a session: %w", c.RemoteAddr(), err)
	}
	c.lose(err)
	c.ready, c.end = nil, err
}

// hungUp reports whether a connection has ended because the server closed it.
func hungUp(err error) bool {
	return !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) ||
			errors.Is(err, syscall.EPIPE))
}

// lose reports, once, that the connection is gone: first to the session, which
// then waits for the next one before it asks again, then to the callers that
// have asked.
func (c *Conn) lose(err error) {
	c.once.Do(func() {
		c.mu.Lock()
		cause := ErrConnection
		if c.open && hungUp(err) {
			cause = ErrHungUp
			c.Sizes.hungUpOn(c.pending)
		}
		open := c.open
		c.mu.Unlock()
		c.tap.Failed(c, open, err)
		c.mu.Lock()
		c.lost = true
		sent, orphans := len(c.pending), append(c.pending, c.asked...)
		c.pending, c.asked, c.queue = nil, nil, nil
		c.mu.Unlock()
		close(c.over)
		var refused Refusal
		errors.As(err, &refused) // the answer to the first request
		for i, r := range orphans {
			switch {
			case r.Caller == nil:
			case i == 0 && refused.error != nil:
				r.Caller.Tell(0, refused.error)
			case i < sent:
				r.Caller.Tell(0, cause)
			default:
				r.Caller.Tell(0, ErrConnection)
			}
		}
	})
}

// Drop ends the connection; the reading side reports it.
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
