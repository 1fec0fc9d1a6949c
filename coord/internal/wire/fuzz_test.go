package wire

// This file imports the standard library alone: "make fuzz" compiles only its
// tests, since all that they import is compiled once more for fuzzing.

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

const timeout = 10 * time.Second

// first is the number of the first request.
const first = 2

// asking makes a [Caller] of functions.
func asking(read func(*Decoder), told func(error)) Caller {
	return &Call[struct{}]{Fields: func(d *Decoder) (_ struct{}) { read(d); return }, Told: told}
}

// recordingTap records the calls of a wire.
type recordingTap struct {
	refuse   error
	first    []Request // asked as the connection opens
	answers  int
	timed    int // how many requests the window hears of
	proves   bool
	events   map[string]zk.EventType
	failures int
}

func (r *recordingTap) Established(Welcome, time.Time) error { return r.refuse }
func (r *recordingTap) Failed(*Conn, bool, error)            { r.failures++ }

func (r *recordingTap) Answered(_ int64, _ error, sent time.Time, proves bool) {
	r.proves = proves
	r.answers++
	if !sent.IsZero() {
		r.timed++
	}
}

func (r *recordingTap) Opened(c *Conn, _ Welcome) {
	for _, request := range r.first {
		_ = c.Ask(request, Nothing)
	}
}

func (r *recordingTap) Fired(event zk.EventType, path string) {
	if r.events == nil {
		r.events = map[string]zk.EventType{}
	}
	r.events[path] = event
}

func reply(xid int32, zxid int64, code int32) []byte {
	return appendInt32(appendInt64(appendInt32(nil, xid), zxid), code)
}

// welcome is the reply to a handshake.
func welcome() []byte {
	b := appendInt32(appendInt32(nil, 0), int32(timeout/time.Millisecond))
	return appendBuffer(appendInt64(b, 77), make([]byte, 16))
}

// notification is what a server sends when a watch fires.
func notification(event zk.EventType, path string) []byte {
	return appendString(appendInt32(appendInt32(reply(xidNotification, -1, 0), int32(event)), 3), path)
}

// replies are what the decoders of the session's own requests read.
var replies = []func(*Decoder){
	func(d *Decoder) { d.Created("/a-") },
	func(d *Decoder) { d.Names(); d.Stat() },
	func(d *Decoder) { d.Buffer(); d.Stat() },
	func(d *Decoder) { d.Stat() },
	func(d *Decoder) { d.Results([]Op{{Kind: OpCreate, Path: "/a"}, {Kind: OpSet}, {Kind: OpCheck}}) },
	func(d *Decoder) { d.welcome() },
}

func FuzzEveryReplyIsReadWholeOrEndsTheConnection(f *testing.F) {
	for kind, body := range [][]byte{
		appendString(nil, "/a-0000000001"),
		append(appendString(appendInt32(nil, 1), "child"), make([]byte, statSize)...),
		append(appendBuffer(nil, []byte("data")), make([]byte, statSize)...),
		make([]byte, statSize),
		appendMultiHeader(appendMultiHeader(append(appendMultiHeader(appendString(appendMultiHeader(nil, OpCreate, 0), "/a"), OpSet, 0),
			make([]byte, statSize)...), OpCheck, 0), opError, 1),
		welcome(),
	} {
		f.Add(byte(kind), body)
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		c := New(nopConn{}, &recordingTap{}, Options{Sizes: NewSizes(DefaultMaxPacket)})
		c.open, c.stall = true, timeout
		told := 0
		c.begin(Request{xid: first, Op: OpMulti, Caller: asking(replies[int(kind)%len(replies)], func(error) { told++ })})
		_, err := c.examine(withLength(append(reply(first, 9, 0), body...)))
		if err != nil {
			c.stop(err)
		}
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

func FuzzWhateverAServerSendsEveryRequestIsAnswered(f *testing.F) {
	f.Add(withLength(welcome()))
	f.Add(append(withLength(welcome()), withLength(append(reply(first, 9, 0), appendString(nil, "/a-1")...))...))
	f.Add(append(withLength(welcome()), withLength(notification(zk.EventNodeDeleted, "/a"))...))
	f.Add(binary.BigEndian.AppendUint32(withLength(welcome()), maxFrame))
	f.Fuzz(func(t *testing.T, sent []byte) {
		tap := &recordingTap{}
		c := New(nopConn{sent: bytes.NewReader(sent)}, tap,
			Options{Limit: timeout, Asked: new(atomic.Uint32), Sizes: NewSizes(DefaultMaxPacket)})
		_, _ = c.Write(withLength(make([]byte, 44)))
		told := 0
		for _, read := range replies {
			if err := c.Ask(Request{Op: OpGetData, Caller: asking(read, func(error) { told++ })}, Nothing); err != nil {
				t.Fatal(err)
			}
		}
		c.flush()
		got, _ := io.ReadAll(c)
		if len(got) > len(sent) || cap(c.frame) > 4*len(sent)+keptBuffer || told != len(replies) || tap.failures != 1 {
			t.Errorf("got %d bytes of %d, in a buffer of %d; told %d times; %d failures", len(got), len(sent), cap(c.frame),
				told, tap.failures)
		}
	})
}

// nopConn is a connection on which a server has sent something.
type nopConn struct {
	net.Conn
	sent io.Reader
}

func (c nopConn) Read(p []byte) (int, error)    { return c.sent.Read(p) }
func (nopConn) Write(p []byte) (int, error)     { return len(p), nil }
func (nopConn) Close() error                    { return nil }
func (nopConn) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (nopConn) SetReadDeadline(time.Time) error { return nil }
