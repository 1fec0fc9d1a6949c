package session

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/window"
)

// tap receives what a wire observes; the session is one. The calls come from
// the client library's reading goroutine, before the library sees the bytes in
// question; failed also from the one that closes the connection.
type tap interface {
	// established judges the reply to a handshake that was sent at sent, a
	// moment of the session's clock. An error refuses the connection. Unless
	// probe is 0, a probe of that xid goes out ahead of everything else.
	established(id int64, timeout time.Duration, sent time.Time) (probe int32, err error)
	// answered notes a reply to the request r.
	answered(r request, zxid int64, code int32)
	// authenticated notes the reply to one of the session's credentials.
	authenticated(code int32)
	// refused notes that a server has closed the connection with these requests
	// unanswered.
	refused(pending []request)
	// failed notes that the connection is gone.
	failed(w *wire, open bool, err error)
}

// request is a request on its way.
type request struct {
	xid, op int32
	path    string
	watch   bool
	size    int
	sent    time.Time
	moment  time.Time    // the same by the session's clock, or zero: the window need not know
	tell    func(answer) // of a request of the session's own
}

// armed names a watch that the server holds for this connection.
type armed struct {
	path string
	kind Kind
}

// wire is the net.Conn the client library talks through; the session's own
// requests share it (ask.go). The library writes each packet with one Write,
// and one goroutine of it reads.
type wire struct {
	net.Conn
	tap     tap
	clock   window.Clock
	creds   []Auth
	limit   time.Duration // for the handshake's reply
	patient bool          // the first reply may take T: the server may be busy
	seen    int64         // the newest change that the session knows of
	in      *bufio.Reader

	writing chan struct{} // has room for one: packets go out in the order they are noted

	frame []byte // the packet read last
	ready []byte // read and examined, not yet taken by the library
	end   error  // what a Read says once ready is empty
	once  sync.Once
	over  chan struct{} // closed when the connection has ended
	more  chan struct{} // wakes the writer of the session's own requests

	mu       sync.Mutex
	greeted  time.Time     // when the handshake was sent
	began    time.Time     // the same by the session's clock
	open     bool          // the handshake was answered
	stall    time.Duration // limit for the reply to any request after it
	rested   bool          // see rest
	passwd   []byte        // of the session
	broken   error         // why a packet could not be written
	pending  []request     // sent and not answered, in the order they were sent
	read     time.Time     // when the last one was sent that the window hears of
	wrote    time.Time     // the same of writes
	watches  map[armed]struct{}
	progress time.Time // when the server last came nearer to the reply to the oldest request
	patience time.Time // the read deadline the library asked for
	lost     bool      // nothing can be asked any more
	asked    []request // the session's own that are not sent yet
	queue    []byte    // their packets
	spare    []byte    // for the next
}

func newWire(raw net.Conn, t tap, clock window.Clock, creds []Auth, limit time.Duration) *wire {
	w := &wire{
		Conn: raw, tap: t, clock: clock, creds: creds, limit: limit,
		writing: make(chan struct{}, 1), watches: map[armed]struct{}{}, over: make(chan struct{}), more: make(chan struct{}, 1),
	}
	w.in = bufio.NewReaderSize(raw, 16<<10)
	return w
}

// Write sends one packet. It never reports an error: the client library would
// wedge on it. It closes the connection instead, and the reading side ends.
func (w *wire) Write(p []byte) (int, error) {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	limit, greets := w.note(p)
	packet := p
	if greets {
		packet = w.greeting(p)
	}
	w.transmit(packet, limit)
	return len(p), nil
}

// most is how much is written at a time: what takes long, but goes on, is no
// sign of a hung server.
const most = 64 << 10

// transmit writes packets that were noted; w.writing is taken.
func (w *wire) transmit(packets []byte, limit time.Duration) {
	for piece := range slices.Chunk(packets, most) {
		_ = w.Conn.SetWriteDeadline(time.Now().Add(limit))
		if _, err := w.Conn.Write(piece); err != nil {
			if !errors.Is(err, net.ErrClosed) { // why it was closed is known already
				w.mu.Lock()
				w.broken = err
				w.mu.Unlock()
			}
			_ = w.Conn.Close()
			return
		}
	}
}

// SetWriteDeadline does nothing: the library would take back the deadline of a
// packet that is not its own.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// note remembers a packet of the library's before it is sent.
func (w *wire) note(p []byte) (limit time.Duration, greets bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.greeted.IsZero() {
		w.greeted, w.began = time.Now(), w.clock.Now()
		w.applyDeadline()
		return w.limit, true
	}
	r := request{xid: int32At(p, 4), op: int32At(p, 8), size: len(p) - lengthSize}
	switch r.op {
	case opGetData, opExists, opGetChildren, opGetChildren2:
		var end int
		r.path, end = stringAt(p, 12)
		r.watch = end < len(p) && p[end] == 1
	}
	w.begin(r)
	return w.stall, false
}

// greeting is the library's handshake with the newest change that the session
// knows of, of which the library has not seen all: a server that lags behind it
// refuses the session.
func (w *wire) greeting(p []byte) []byte {
	p = bytes.Clone(p)
	if int64At(p, 8) < w.seen {
		binary.BigEndian.PutUint64(p[8:], uint64(w.seen))
	}
	return p
}

// begin notes that requests are sent, before they are, so that the time is no
// later than the moment a server could have received them; w.mu is held.
func (w *wire) begin(all ...request) {
	now := time.Now()
	for _, r := range all {
		if r.sent = now; w.heard(r) {
			r.moment = w.clock.Now()
		}
		w.pending = append(w.pending, r)
	}
	w.applyDeadline()
}

// heard reports whether the window hears of a request: of one read and one
// write in T/100, for the session's clock takes system calls, and of every
// transaction, since two of them, one right after the other, open a window.
func (w *wire) heard(r request) bool {
	last := &w.read
	if isWrite(r.op) {
		last = &w.wrote
	}
	if r.op != opMulti && r.sent.Sub(*last) < w.stall*stallShare/100 {
		return false
	}
	*last = r.sent
	return true
}

// SetReadDeadline notes the deadline that the library asks for. It applies
// while no request is under way.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patience = t
	w.applyDeadline()
	return nil
}

// applyDeadline sets the read deadline: the limit of the handshake, or that for
// the oldest unanswered request, or what the library asked for. The second
// counts from the server's last sign of progress: bytes of a large reply that
// flow, and replies to what was asked before. A request that has to wait for
// many others is no sign of a hung server.
func (w *wire) applyDeadline() {
	at := w.patience
	switch {
	case !w.open && !w.greeted.IsZero():
		at = w.greeted.Add(w.limit)
	case len(w.pending) > 0:
		from := w.pending[0].sent
		if w.progress.After(from) {
			from = w.progress
		}
		at = from.Add(w.stall)
		if w.patient {
			at = from.Add(2 * w.stall)
		}
	}
	_ = w.Conn.SetReadDeadline(at)
}

// Read hands out whole frames only, each after its examination.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.end != nil {
			return 0, w.end
		}
		w.rest()
		frame, err := w.readFrame()
		if err == nil {
			frame, err = w.examine(frame)
		}
		if err != nil {
			w.stop(err)
			continue
		}
		w.ready = frame
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}

// headStart is how long the library has after the handshake until replies come.
const headStart = 5 * time.Millisecond

// rest gives the library its head start. It begins to read replies at the same
// time as it looks for watches to send again, and if a reply registers one in
// between, it races with itself (over the last zxid seen). With the head start
// it looks first, and finds none: those of the last connection were fired.
func (w *wire) rest() {
	w.mu.Lock()
	due := w.open && !w.rested
	w.rested = w.open
	w.mu.Unlock()
	if due {
		time.Sleep(headStart)
	}
}

// stop ends the connection. The library learns it through every watch it has on
// this connection: afterwards it has none left to send again, and every waiter
// looks again. The order matters: the session must know that the connection is
// gone before the waiters wake and ask it.
func (w *wire) stop(err error) {
	_ = w.Conn.Close()
	w.mu.Lock()
	open := w.open
	if w.broken != nil {
		err = w.broken
	}
	if open && hungUp(err) {
		w.tap.refused(w.pending)
	}
	w.mu.Unlock()
	if !open {
		err = fmt.Errorf("%v accepts connections and does not open a session: %w", w.RemoteAddr(), err)
	}
	w.lose(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = err
	w.ready = nil
	for a := range w.watches {
		event := int32(eventDataChanged)
		if a.kind == Children {
			event = eventChildrenChanged
		}
		w.ready = append(w.ready, notification(event, a.path)...)
	}
	w.watches = nil
}

// lose tells, once, that the connection is gone: first the session, so that it
// waits for the next one before it asks again, then those that have asked.
func (w *wire) lose(err error) {
	w.once.Do(func() {
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		w.tap.failed(w, open, err)
		w.mu.Lock()
		w.lost = true
		orphans := append(w.pending, w.asked...)
		w.pending, w.asked, w.queue = nil, nil, nil
		w.mu.Unlock()
		close(w.over)
		for _, r := range orphans {
			if r.tell != nil {
				r.tell(answer{err: ErrConnection})
			}
		}
	})
}

// Close is how the library ends the connection, when it has stopped reading.
func (w *wire) Close() error {
	err := w.Conn.Close()
	w.lose(net.ErrClosed)
	return err
}

// closeSession asks the server to end the session, and waits until it has, or
// has closed the connection, but at most for limit.
func (w *wire) closeSession(limit time.Duration) {
	timer := time.AfterFunc(limit, func() { _ = w.Conn.Close() })
	defer timer.Stop()
	_, _ = w.Write(closeFrame())
	<-w.over
}
