package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// F59: a length that is wrong, behind which other packets go on.
func TestF59APacketThatIsNeverWholeEndsTheConnectionWithinTheTimeout(t *testing.T) {
	InVirtualTime(t, func(t *testing.T) {
		l := newLink(t)
		l.opened(t)
		answer := l.ask(t, OpGetData, 10)
		l.read(t)
		begun := time.Now()
		go func() {
			_, err := l.server.Write(append(binary.BigEndian.AppendUint32(nil, 1<<20), reply(first, 9, 0)...))
			for ; err == nil; time.Sleep(timeout / 3) {
				_, err = l.server.Write(withLength(reply(xidPing, 9, 0)))
			}
		}()
		require.ErrorIs(t, <-answer, ErrConnection)
		require.LessOrEqual(t, time.Since(begun), timeout)
		_ = l.server.Close()
		time.Sleep(timeout) // for the goroutine above
	})
}

func TestF59BeforeTheHandshakeNoPacketIsLargerThanOne(t *testing.T) {
	InVirtualTime(t, func(t *testing.T) {
		l := newLink(t)
		l.greets(t)
		begun := time.Now()
		go func() { _, _ = l.server.Write(binary.BigEndian.AppendUint32(nil, maxHandshake+1)) }()
		_, err := l.Conn.Read(make([]byte, 4))
		require.ErrorContains(t, err, "not ZooKeeper's protocol")
		require.Zero(t, time.Since(begun), "waited for the rest")
	})
}

func TestF59WhatIsAnnouncedTakesNoMemoryBeforeItComes(t *testing.T) {
	l := newLink(t)
	ended := l.handshake(t)
	go func() {
		_, _ = l.server.Write(append(binary.BigEndian.AppendUint32(nil, 200<<20), reply(first, 9, 0)...))
		_ = l.server.Close()
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := <-ended
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.EOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
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
		c.begin(Request{xid: first, Op: OpMulti, Read: replies[int(kind)%len(replies)], Tell: func(int64, error) { told++ }})
		_, err := c.examine(withLength(append(reply(first, 9, 0), body...)))
		if err != nil {
			c.stop(err)
		}
		require.Equal(t, 1, told)
	})
}

func FuzzWhateverAServerSendsEveryRequestIsAnswered(f *testing.F) {
	f.Add(withLength(welcome()))
	f.Add(append(withLength(welcome()), withLength(append(reply(first, 9, 0), appendString(nil, "/a-1")...))...))
	f.Add(append(withLength(welcome()), withLength(notification(EventDeleted, "/a"))...))
	f.Add(binary.BigEndian.AppendUint32(withLength(welcome()), maxFrame))
	f.Fuzz(func(t *testing.T, sent []byte) {
		tap := &recordingTap{}
		c := New(nopConn{sent: bytes.NewReader(sent)}, tap, Options{Limit: timeout, Asked: new(atomic.Uint32), Sizes: NewSizes(DefaultMaxPacket)})
		_, _ = c.Write(withLength(make([]byte, 44)))
		told := 0
		for _, read := range replies {
			require.NoError(t, c.Ask(Request{Op: OpGetData, Read: read, Tell: func(int64, error) { told++ }}, Nothing))
		}
		c.flush()
		got, _ := io.ReadAll(c)
		require.LessOrEqual(t, len(got), len(sent))
		require.LessOrEqual(t, cap(c.frame), 4*len(sent)+keptBuffer)
		require.Equal(t, len(replies), told)
		require.Equal(t, 1, tap.failures)
	})
}

// nopConn is a connection on which a server has sent something.
type nopConn struct {
	net.Conn
	sent io.Reader
}

func (c nopConn) Read(p []byte) (int, error)     { return c.sent.Read(p) }
func (nopConn) Write(p []byte) (int, error)      { return len(p), nil }
func (nopConn) Close() error                     { return nil }
func (nopConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (nopConn) SetReadDeadline(time.Time) error  { return nil }
func (nopConn) SetWriteDeadline(time.Time) error { return nil }
