package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/window"
	"github.com/zkcoord/zkcoord/internal/virtualtime"
)

const timeout = 10 * time.Second

// recordingTap notes what a wire tells.
type recordingTap struct {
	refuse   error
	probe    int32
	answers  int
	heard    []int32 // of which requests the window hears
	failures int
	closedOn []request // what servers closed connections on
	auths    []int32
}

func (r *recordingTap) established(int64, time.Duration, time.Time) (int32, error) {
	return r.probe, r.refuse
}
func (r *recordingTap) authenticated(code int32)  { r.auths = append(r.auths, code) }
func (r *recordingTap) refused(pending []request) { r.closedOn = slices.Clone(pending) }
func (r *recordingTap) failed(*wire, bool, error) { r.failures++ }

func (r *recordingTap) answered(of request, _ int64, _ int32) {
	r.answers++
	if !of.moment.IsZero() {
		r.heard = append(r.heard, of.op)
	}
}

// link is a wire and the server's end of its connection.
type link struct {
	*wire
	tap    *recordingTap
	server net.Conn
}

func newLink(t *testing.T, creds ...Auth) link {
	near, far := net.Pipe()
	tap := &recordingTap{}
	w := newWire(near, tap, window.Clock{}, creds, timeout/handshakeShare)
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return link{w, tap, far}
}

// read takes one frame on the server's side.
func (l link) read(t *testing.T) []byte {
	t.Helper()
	head := make([]byte, 4)
	_, err := io.ReadFull(l.server, head)
	require.NoError(t, err)
	body := make([]byte, binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(l.server, body)
	require.NoError(t, err)
	return body
}

func (l link) serve(t *testing.T, body []byte) {
	t.Helper()
	_, err := l.server.Write(withLength(body))
	require.NoError(t, err)
}

// take reads one frame as the client library does.
func (l link) take(t *testing.T) []byte {
	t.Helper()
	head := make([]byte, 4)
	_, err := io.ReadFull(l.wire, head)
	require.NoError(t, err)
	body := make([]byte, binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(l.wire, body)
	require.NoError(t, err)
	return body
}

func reply(xid int32, zxid int64, code int32) []byte {
	b := appendInt32(nil, xid)
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	return appendInt32(b, code)
}

func ask(xid, op int32, path string, watch byte) []byte {
	b := appendInt32(appendInt32(nil, xid), op)
	return withLength(append(appendString(b, path), watch))
}

// handshake opens the wire; timeout is what the server grants.
func (l link) handshake(t *testing.T) {
	t.Helper()
	go func() { _, _ = l.Write(withLength(make([]byte, 44))) }()
	l.read(t)
	answer := appendInt32(appendInt32(nil, 0), int32(timeout/time.Millisecond))
	answer = binary.BigEndian.AppendUint64(answer, 77)
	go func() { _, _ = l.server.Write(withLength(answer)) }()
	require.Equal(t, answer, l.take(t))
}

func TestALostConnectionFiresEveryWatchOnItAndTheSessionKnowsFirst(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		for xid, op := range map[int32]int32{1: opGetData, 2: opGetChildren2, 3: opExists, 4: opGetData, 5: opExists} {
			path := map[int32]string{1: "/data", 2: "/list", 3: "/missing", 4: "/refused", 5: "/gone"}[xid]
			go func() { _, _ = l.Write(ask(xid, op, path, 1)) }()
			l.read(t)
		}
		for xid, code := range map[int32]int32{1: 0, 2: 0, 3: codeNoNode, 4: codeNoNode, 5: 0} {
			go l.serve(t, reply(xid, 9, code))
			l.take(t)
		}
		event := notification(eventDeleted, "/gone")
		go func() { _, _ = l.server.Write(event) }()
		l.take(t)
		require.NoError(t, l.server.Close())
		fired := map[string]int32{}
		for range 3 {
			body := l.take(t)
			require.Equal(t, 1, l.tap.failures, "told before the watches fire")
			path, _ := stringAt(body, replyHeader+8)
			fired[path] = int32At(body, replyHeader)
			require.Zero(t, int32At(body, replyHeader+4), "marked as disconnected")
		}
		require.Equal(t, map[string]int32{
			"/data": eventDataChanged, "/list": eventChildrenChanged, "/missing": eventDataChanged,
		}, fired)
		_, err := l.wire.Read(make([]byte, 4))
		require.Error(t, err)
		require.Equal(t, 1, l.tap.failures)
	})
}

func TestWhatIsAskedTogetherTravelsTogetherAndIsAnsweredInTurn(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		answers := make(chan answer, 3)
		for xid := range int32(3) {
			r := request{xid: xidOwn + xid, op: opCreate, tell: func(a answer) {
				a.body = bytes.Clone(a.body)
				answers <- a
			}}
			require.True(t, l.ask(r, func(b []byte) []byte { return appendString(b, "/node-") }))
		}
		go l.send()
		packets := make([]byte, 3*(4+8+4+len("/node-")))
		n, err := l.server.Read(packets)
		require.NoError(t, err)
		require.Equal(t, len(packets), n, "one write")
		go func() { _, _ = l.wire.Read(make([]byte, 4)) }() // the library gets none of these
		l.serve(t, append(reply(xidOwn, 4711, 0), "body"...))
		require.Positive(t, int32At(packets, 4), "servers hold back no request with a number below 1, however busy they are")
		l.serve(t, reply(xidOwn+1, 4712, codeNoNode))
		require.Equal(t, answer{4711, []byte("body"), nil}, <-answers)
		require.Equal(t, answer{4712, []byte{}, ErrNoNode}, <-answers)
		require.NoError(t, l.server.Close())
		require.Equal(t, ErrConnection, (<-answers).err)
		require.Equal(t, 1, l.tap.failures, "the session knows first")
		require.False(t, l.ask(request{}, func(b []byte) []byte { return b }))
	})
}

// asks has requests of a size sent together. It returns what comes of them.
func (l link) asks(n int32, size int) (answers chan answer) {
	answers = make(chan answer, n)
	for xid := range n {
		l.ask(request{xid: xidOwn + xid, op: opCreate, tell: func(a answer) { answers <- a }}, func(b []byte) []byte {
			return append(b, make([]byte, size)...)
		})
	}
	go l.send()
	go func() {
		for {
			if _, err := l.wire.Read(make([]byte, 4)); err != nil {
				return
			}
		}
	}()
	return answers
}

func TestMuchThatIsAskedTogetherMayTakeLong(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		const n = 8
		answers := l.asks(n, most)
		for xid := range int32(n) {
			time.Sleep(timeout / 5)
			l.read(t)
			l.serve(t, reply(xidOwn+xid, 9, 0))
			require.NoError(t, (<-answers).err)
		}
	})
}

// closedConn is a connection that was closed while a packet was written in
// pieces, since the reading side had met its end.
type closedConn struct{ net.Conn }

func (closedConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

func TestAPacketThatAServerClosedOnIsKnownAlsoWhenItWasBeingWritten(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		l.wire.Conn = closedConn{l.wire.Conn}
		_, _ = l.Write(ask(5, opCreate, "/large", 0))
		require.NoError(t, l.server.Close())
		_, err := l.wire.Read(make([]byte, 4))
		require.Error(t, err)
		require.Len(t, l.tap.closedOn, 1)
		require.EqualValues(t, 5, l.tap.closedOn[0].xid)
	})
}

func TestAServerThatTakesNothingIsGivenUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		begun := time.Now()
		go l.send()
		written := make(chan struct{})
		l.ask(request{xid: xidOwn, op: opCreate}, func(b []byte) []byte { return append(b, 1) })
		go func() {
			time.Sleep(time.Second)
			_ = l.wire.SetWriteDeadline(time.Time{}) // as the library does when it has written
			_, _ = l.Write(ask(1, opGetData, "/a", 0))
			close(written)
		}()
		<-written
		require.Equal(t, timeout/2, time.Since(begun))
		_ = l.wire.Close()
	})
}

func TestAHandshakeTellsTheNewestChangeThatTheSessionKnowsOf(t *testing.T) {
	for seen, told := range map[int64]int64{7: 9, 11: 11} {
		l := newLink(t)
		l.seen = seen
		greeting := make([]byte, 44)
		greeting[11] = 9 // what the library has seen
		go func() { _, _ = l.Write(withLength(greeting)) }()
		require.Equal(t, told, int64At(l.read(t), 4))
		require.EqualValues(t, 9, greeting[11], "the library's packet is left alone")
	}
}

func TestAServerThatDoesNotAnswerTheHandshakeIsGivenUpAfterASixth(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		begun := time.Now()
		go func() { _, _ = l.Write(withLength(make([]byte, 44))) }()
		l.read(t)
		require.NoError(t, l.SetReadDeadline(time.Now().Add(7*timeout))) // what the library would wait
		_, err := l.wire.Read(make([]byte, 4))
		require.Error(t, err)
		require.Equal(t, timeout/6, time.Since(begun))
	})
}

func TestAServerThatDoesNotAnswerARequestIsGivenUpAfterHalf(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		time.Sleep(time.Second)
		begun := time.Now()
		go func() { _, _ = l.Write(ask(1, opGetData, "/a", 0)) }()
		l.read(t)
		_, err := l.wire.Read(make([]byte, 4))
		require.Error(t, err)
		require.Equal(t, timeout/2, time.Since(begun))
	})
}

// While others' replies come, the server is at work. One that is passed over is
// lost, whatever comes after it.
func TestARequestThatQueuesBehindOthersIsNotGivenUp(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first int32 // the xid of the first reply
		kept  bool
	}{{"in order", 1, true}, {"the first is passed over", 2, false}} {
		t.Run(tc.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				l := newLink(t)
				l.handshake(t)
				go func() {
					for xid := range int32(20) {
						_, _ = l.Write(ask(xid+1, opGetData, "/a", 0))
					}
				}()
				for range 20 {
					l.read(t)
				}
				go func() {
					for xid := tc.first; xid <= 20; xid++ {
						time.Sleep(timeout / 5)
						if _, err := l.server.Write(withLength(reply(xid, 1, 0))); err != nil {
							return
						}
					}
				}()
				begun := time.Now()
				var err error
				for xid := tc.first; xid <= 20 && err == nil; xid++ {
					require.NoError(t, l.SetReadDeadline(time.Now().Add(timeout*2/3))) // as the library does
					_, err = io.ReadFull(l.wire, make([]byte, 4+replyHeader))
				}
				if tc.kept {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
					require.Equal(t, timeout/2, time.Since(begun))
				}
				require.NoError(t, l.wire.Conn.Close())
				time.Sleep(timeout) // for the goroutine above
			})
		})
	}
}

// A server that answered nothing on the connection before may be busy: it gets
// all the time that there is for its first reply, and no more for the others.
func TestABusyServerHasMoreTimeForItsFirstReplyOnly(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.patient = true
		l.handshake(t)
		go func() { _, _ = l.Write(ask(1, opGetData, "/a", 0)) }()
		l.read(t)
		go func() {
			time.Sleep(timeout * 9 / 10)
			_, _ = l.server.Write(withLength(reply(1, 1, 0)))
		}()
		require.NoError(t, l.SetReadDeadline(time.Now().Add(timeout*2/3)))
		l.take(t)
		go func() { _, _ = l.Write(ask(2, opGetData, "/a", 0)) }()
		l.read(t)
		begun := time.Now()
		_, err := l.wire.Read(make([]byte, 4))
		require.Error(t, err)
		require.Equal(t, timeout/2, time.Since(begun))
	})
}

func TestAProbeGoesOutAheadOfEverythingAndItsReplyIsKept(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.tap.probe = xidProbe - 1
		go func() { _, _ = l.Write(withLength(make([]byte, 44))) }()
		l.read(t)
		answer := appendInt32(appendInt32(nil, 0), int32(timeout/time.Millisecond))
		go func() { _, _ = l.server.Write(withLength(binary.BigEndian.AppendUint64(answer, 77))) }()
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			l.take(t) // the handshake's reply: only now the library may write
			require.EqualValues(t, 7, int32At(l.take(t), 0), "the library never asked for the other reply")
		}()
		require.Equal(t, probeFrame(xidProbe - 1)[4:], l.read(t))
		go func() { _, _ = l.Write(ask(7, opGetData, "/a", 0)) }()
		l.read(t)
		l.serve(t, reply(xidProbe-1, 9, 0))
		l.serve(t, reply(7, 9, 0))
		<-taken
		require.Equal(t, 2, l.tap.answers, "the session hears of it")
	})
}

func TestALargeReplyThatFlowsIsNotGivenUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		go func() { _, _ = l.Write(ask(1, opGetChildren2, "/a", 0)) }()
		l.read(t)
		go func() {
			for _, chunk := range [][]byte{withLength(append(reply(1, 1, 0), make([]byte, 300)...))} {
				for i := range chunk {
					time.Sleep(timeout / 100)
					if _, err := l.server.Write(chunk[i : i+1]); err != nil {
						return
					}
				}
			}
		}()
		require.Len(t, l.take(t), replyHeader+300)
	})
}

func TestTheWindowHearsOfOneReadAndOneWriteInAHundredthOfTheTimeoutAndOfEveryTransaction(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.handshake(t)
		hears := func(of ...int32) []int32 {
			l.tap.heard = nil
			for i, op := range of {
				go func() { _, _ = l.Write(ask(int32(i+1), op, "/a", 0)) }()
				l.read(t)
				go l.serve(t, reply(int32(i+1), 9, 0))
				l.take(t)
			}
			return l.tap.heard
		}
		require.Equal(t, []int32{opGetData, opCreate}, hears(opGetData, opExists, opCreate, opDelete))
		time.Sleep(timeout / 200)
		require.Equal(t, []int32{opMulti, opMulti}, hears(opGetData, opMulti, opMulti, opCreate))
		time.Sleep(timeout / 200)
		require.Equal(t, []int32{opGetData}, hears(opGetData, opCreate))
		time.Sleep(timeout / 200)
		require.Equal(t, []int32{opDelete}, hears(opGetData, opDelete))
	})
}

func TestAWriteErrorIsNeverShownToTheLibrary(t *testing.T) {
	l := newLink(t)
	require.NoError(t, l.server.Close())
	n, err := l.Write(make([]byte, 48))
	require.NoError(t, err)
	require.Equal(t, 48, n)
	_, err = l.wire.Read(make([]byte, 4))
	require.Error(t, err)
}

func TestARefusedSessionIsNotHandedToTheLibrary(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.tap.refuse = errors.New("another session")
		go func() { _, _ = l.Write(withLength(make([]byte, 44))) }()
		l.read(t)
		go func() { _, _ = l.server.Write(withLength(make([]byte, 36))) }()
		_, err := l.wire.Read(make([]byte, 4))
		require.ErrorIs(t, err, l.tap.refuse)
	})
}

func TestCredentialsGoAheadOfEverythingAndTheirRepliesAreKept(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLink(t, Auth{"digest", []byte("u:p")})
		got := make(chan []byte, 1)
		go func() {
			_, _ = io.ReadFull(l.server, make([]byte, 48))
			answer := appendInt32(appendInt32(nil, 0), int32(timeout/time.Millisecond))
			_, _ = l.server.Write(withLength(binary.BigEndian.AppendUint64(answer, 77)))
			head := make([]byte, 4)
			_, _ = io.ReadFull(l.server, head)
			body := make([]byte, binary.BigEndian.Uint32(head))
			_, _ = io.ReadFull(l.server, body)
			got <- body
			_, _ = l.server.Write(withLength(reply(xidAuth, 0, -115)))
			_, _ = l.server.Write(withLength(reply(xidPing, 0, 0)))
		}()
		_, _ = l.Write(withLength(make([]byte, 44)))
		l.take(t)
		require.Equal(t, authFrame(Auth{"digest", []byte("u:p")})[4:], <-got)
		require.EqualValues(t, xidPing, int32At(l.take(t), 0), "the library never asked for the other reply")
		require.Equal(t, []int32{-115}, l.tap.auths)
	})
}

func FuzzNoReplyPanics(f *testing.F) {
	f.Add(reply(1, 2, 0))
	f.Add(notification(eventDeleted, "/a")[4:])
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, open := range []bool{false, true} {
			w := newWire(nopConn{}, &recordingTap{}, window.Clock{}, nil, timeout)
			w.open = open
			w.note(body)
			w.note(body)
			_, _ = w.examine(withLength(body))
		}
	})
}

type nopConn struct{ net.Conn }

func (nopConn) SetReadDeadline(time.Time) error { return nil }
