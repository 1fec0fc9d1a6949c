//go:build !fuzz

package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
)

// link is a connection and the server's end of its connection.
type link struct {
	*Conn
	tap    *recordingTap
	server net.Conn
}

func newLink(t *testing.T) link {
	near, far := net.Pipe()
	tap := &recordingTap{}
	c := New(near, tap, Options{Limit: timeout / 6, Asked: new(atomic.Uint32), Sizes: NewSizes(DefaultMaxPacket)})
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return link{c, tap, far}
}

// onLink runs f in virtual time.
func onLink(t *testing.T, f func(t *testing.T, l link)) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) { f(t, newLink(t)) })
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

// greets has the library shake hands.
func (l link) greets(t *testing.T) {
	t.Helper()
	go func() { _, _ = l.Write(withLength(make([]byte, 44))) }()
	l.read(t)
}

// handshake opens the connection. ended gets what the library reads next.
func (l link) handshake(t *testing.T) (ended chan error) {
	t.Helper()
	l.greets(t)
	go func() { _, _ = l.server.Write(withLength(welcome())) }()
	answer := make([]byte, lengthSize+len(welcome()))
	_, err := io.ReadFull(l.Conn, answer)
	require.NoError(t, err)
	require.Equal(t, withLength(welcome()), answer)
	ended = make(chan error, 1)
	go func() {
		_, err := l.Conn.Read(make([]byte, 4))
		ended <- err
	}()
	return ended
}

// opened is handshake with a writer.
func (l link) opened(t *testing.T) (ended chan error) {
	t.Helper()
	go l.Send()
	return l.handshake(t)
}

// ask asks for something of a size. It returns what comes of it.
func (l link) ask(t *testing.T, op OpCode, size int) (answer chan error) {
	t.Helper()
	answer = make(chan error, 1)
	require.NoError(t,
		l.Ask(Request{Op: op, Caller: &Call[any]{Told: func(err error) { answer <- err }}}, func(b []byte) []byte {
			return append(b, make([]byte, size)...)
		}))
	return answer
}

func TestAnEventIsToldAndALostConnectionAsTheEndOfTheWatches(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		ended := l.opened(t)
		l.serve(t, notification(zk.EventNodeDeleted, "/gone"))
		l.serve(t, notification(zk.EventNodeChildrenChanged, "/list"))
		require.NoError(t, l.server.Close())
		require.Error(t, <-ended)
		require.Equal(t, map[string]zk.EventType{"/gone": zk.EventNodeDeleted, "/list": zk.EventNodeChildrenChanged},
			l.tap.events)
		require.Equal(t, 1, l.tap.failures)
	})
}

func TestWhatIsAskedTogetherTravelsTogetherAndIsAnsweredInTurn(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.handshake(t)
		var calls [3]*Call[string]
		for i := range calls {
			calls[i] = &Call[string]{Fields: func(d *Decoder) string { return string(d.b) }, Done: make(chan struct{})}
			require.NoError(t,
				l.Ask(Request{Op: OpCreate, Caller: calls[i]}, func(b []byte) []byte { return appendString(b, "/node-") }))
		}
		go l.Send()
		packets := make([]byte, 3*(4+8+4+len("/node-")))
		n, err := l.server.Read(packets)
		require.NoError(t, err)
		require.Equal(t, len(packets), n, "one write")
		require.Positive(t, int32At(packets, 4), "servers hold back no request with a number below 1, however busy they are")
		l.serve(t, append(reply(first, 4711, 0), "body"...))
		l.serve(t, reply(first+1, 4712, -101))
		<-calls[1].Done
		require.Equal(t, []any{int64(4711), "body", nil}, []any{calls[0].Zxid, calls[0].Value, calls[0].Err})
		require.Equal(t, []any{int64(4712), "", zk.ErrNoNode}, []any{calls[1].Zxid, calls[1].Value, calls[1].Err})
		require.NoError(t, l.server.Close())
		<-calls[2].Done
		require.Equal(t, ErrHungUp, calls[2].Err)
		require.Equal(t, 1, l.tap.failures, "the session knows first")
		require.Equal(t, ErrConnection, l.Ask(Request{}, Nothing))
	})
}

func TestARequestThatWasNotSentYetIsToldOfALostConnection(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.handshake(t)
		answer := l.ask(t, OpDelete, 10)
		require.NoError(t, l.server.Close()) // nothing writes what is queued
		require.Equal(t, ErrConnection, <-answer)
		require.Equal(t, 1, l.tap.failures, "the session knows first")
	})
}

func TestMuchThatIsAskedTogetherMayTakeLong(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.opened(t)
		var answers []chan error
		for range 8 {
			answers = append(answers, l.ask(t, OpCreate, 64<<10))
		}
		for i, answer := range answers {
			time.Sleep(timeout / 5)
			l.read(t)
			l.serve(t, reply(first+int32(i), 9, 0))
			require.NoError(t, <-answer)
		}
	})
}

// closedConn is a connection that was closed while a packet was written in
// pieces, since the reading side had met its end.
type closedConn struct{ net.Conn }

func (closedConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

func TestAPacketThatAServerClosedOnIsKnownAlsoWhenItWasBeingWritten(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		ended := l.handshake(t)
		l.Conn.Conn = closedConn{l.Conn.Conn}
		answer := l.ask(t, OpCreate, 10_000)
		l.flush()
		require.NoError(t, l.server.Close())
		require.Error(t, <-ended)
		require.Equal(t, ErrHungUp, <-answer)
		require.ErrorAs(t, l.Sizes.Judge(10_000+4<<10), new(Doubt))
	})
}

func TestAServerThatTakesNothingIsGivenUp(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		ended := l.opened(t)
		begun := time.Now()
		l.ask(t, OpCreate, 1)
		require.Error(t, <-ended)
		require.Equal(t, timeout/2, time.Since(begun))
	})
}

func TestAHandshakeTellsTheNewestChangeThatTheSessionKnowsOf(t *testing.T) {
	for seen, told := range map[int64]int64{7: 9, 11: 11} {
		l := newLink(t)
		l.Seen = seen
		greeting := make([]byte, 44)
		greeting[11] = 9 // what the library has seen
		go func() { _, _ = l.Write(withLength(greeting)) }()
		require.Equal(t, told, int64At(l.read(t), 4))
		require.EqualValues(t, 9, greeting[11], "the library's packet is left alone")
	}
}

func TestAServerThatDoesNotAnswerTheHandshakeIsGivenUpAfterASixth(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		begun := time.Now()
		l.greets(t)
		require.NoError(t, l.SetReadDeadline(time.Now().Add(7*timeout))) // what the library would wait
		_, err := l.Conn.Read(make([]byte, 4))
		require.Error(t, err)
		require.Equal(t, timeout/6, time.Since(begun))
	})
}

func TestAServerThatDoesNotAnswerARequestIsGivenUpAfterHalf(t *testing.T) {
	for name, ask := range map[string]func(*testing.T, link){
		"a request": func(t *testing.T, l link) { l.ask(t, OpGetData, 10) },
		"the library's ping": func(_ *testing.T, l link) {
			_, _ = l.Write(withLength(appendInt32(appendInt32(nil, xidPing), 11)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onLink(t, func(t *testing.T, l link) {
				ended := l.opened(t)
				time.Sleep(10 * timeout) // nothing is under way
				begun := time.Now()
				go ask(t, l)
				l.read(t)
				require.Error(t, <-ended)
				require.Equal(t, timeout/2, time.Since(begun))
			})
		})
	}
}

// While others' replies come, the server is at work. A request that is passed
// over is lost, even if more replies come.
func TestARequestThatQueuesBehindOthersIsNotGivenUp(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first int32 // the number of the first reply
		kept  bool
	}{{"in order", 1, true}, {"the first is passed over", 2, false}} {
		t.Run(tc.name, func(t *testing.T) {
			onLink(t, func(t *testing.T, l link) {
				ended := l.opened(t)
				var answers []chan error
				for range 20 {
					answers = append(answers, l.ask(t, OpGetData, 1))
				}
				for range 20 {
					l.read(t)
				}
				begun := time.Now()
				go func() {
					for xid := tc.first; xid <= 20; xid++ {
						time.Sleep(timeout / 5)
						if _, err := l.server.Write(withLength(reply(first-1+xid, 1, 0))); err != nil {
							return
						}
					}
				}()
				if tc.kept {
					for _, answer := range answers {
						require.NoError(t, <-answer)
					}
				} else {
					require.Error(t, <-ended)
					require.Equal(t, timeout/2, time.Since(begun))
				}
				l.Drop()
				time.Sleep(timeout) // for the goroutine above
			})
		})
	}
}

// A server that did not answer on the connection before may be busy: its first
// reply gets all the time there is, later ones do not.
func TestABusyServerHasMoreTimeForItsFirstReplyOnly(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.Patient = true
		ended := l.opened(t)
		answer := l.ask(t, OpGetData, 1)
		l.read(t)
		time.Sleep(timeout * 9 / 10)
		l.serve(t, reply(first, 1, 0))
		require.NoError(t, <-answer)
		l.ask(t, OpGetData, 1)
		begun := time.Now()
		l.read(t)
		require.Error(t, <-ended)
		require.Equal(t, timeout/2, time.Since(begun))
	})
}

func TestWhatTheSessionAsksAsTheConnectionOpensGoesAheadOfEverything(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		told := make(chan error, 2)
		tell := &Call[any]{Told: func(err error) { told <- err }}
		l.tap.first = []Request{{Op: OpAuth, Caller: tell}, {Op: OpMulti, Urgent: true, Caller: tell}}
		l.opened(t)
		l.ask(t, OpGetData, 1)
		credential, probe, read := l.read(t), l.read(t), l.read(t)
		require.EqualValues(t, xidAuth, int32At(credential, 0))
		require.Less(t, int32At(probe, 0), int32(xidUrgent), "a busy server holds back what is above 0")
		require.EqualValues(t, OpGetData, int32At(read, 4))
		l.serve(t, reply(xidAuth, 0, -115))
		l.serve(t, reply(int32At(probe, 0), 9, 0))
		require.Equal(t, zk.ErrAuthFailed, <-told)
		require.NoError(t, <-told)
	})
}

func TestALargeReplyThatFlowsIsNotGivenUp(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.opened(t)
		answer := l.ask(t, OpGetChildren2, 1)
		l.read(t)
		packet := withLength(append(reply(first, 1, 0), make([]byte, 300)...))
		for i := range packet {
			time.Sleep(timeout / 100)
			_, err := l.server.Write(packet[i : i+1])
			require.NoError(t, err)
		}
		require.NoError(t, <-answer)
	})
}

func TestTheWindowHearsOfOneReadAndOneWriteInAHundredthOfTheTimeoutAndOfEveryTransaction(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.opened(t)
		asked := int32(0)
		hears := func(of ...OpCode) (heard []OpCode) {
			for _, op := range of {
				before := l.tap.timed
				answer := l.ask(t, op, 1)
				l.read(t)
				xid := first + asked
				if op == OpAuth {
					xid = xidAuth
				}
				l.serve(t, reply(xid, 9, 0))
				asked++
				require.NoError(t, <-answer)
				if l.tap.timed > before {
					heard = append(heard, op)
				}
			}
			return heard
		}
		require.Equal(t, []OpCode{OpGetData, OpCreate}, hears(OpAuth, OpGetData, OpExists, OpAuth, OpCreate, OpDelete))
		time.Sleep(timeout / 200)
		require.Equal(t, []OpCode{OpMulti, OpMulti}, hears(OpGetData, OpMulti, OpMulti, OpCreate))
		time.Sleep(timeout / 200)
		require.Equal(t, []OpCode{OpGetData}, hears(OpGetData, OpCreate))
		time.Sleep(timeout / 200)
		require.Equal(t, []OpCode{OpDelete}, hears(OpGetData, OpDelete))
	})
}

// A server can refuse a write by itself.
func TestARefusedWriteProvesSomethingOnlyIfTheEnsembleAgreedOnIt(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.opened(t)
		for i, c := range []struct {
			op     OpCode
			zxid   int64
			code   int32
			proves bool
		}{
			{OpCreate, 9, 0, true},
			{OpCreate, 9, -102, true},
			{OpCreate, 0, -102, false},
			{OpSet, 9, -103, true},
			{OpMulti, 9, -127, false},
			{OpDelete, 9, -112, false},
			{OpGetData, 9, 0, false},
		} {
			answer := l.ask(t, c.op, 1)
			l.read(t)
			l.serve(t, reply(first+int32(i), c.zxid, c.code))
			<-answer
			require.Equal(t, c.proves, l.tap.proves, "%v", c)
		}
	})
}

func TestAWriteErrorIsNeverShownToTheLibrary(t *testing.T) {
	l := newLink(t)
	require.NoError(t, l.server.Close())
	n, err := l.Write(make([]byte, 48))
	require.NoError(t, err)
	require.Equal(t, 48, n)
	_, err = l.Conn.Read(make([]byte, 4))
	require.Error(t, err)
}

func TestARefusedSessionIsNotHandedToTheLibrary(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
		l.tap.refuse = errors.New("another session")
		l.greets(t)
		go func() { _, _ = l.server.Write(withLength(welcome())) }()
		_, err := l.Conn.Read(make([]byte, 4))
		require.ErrorIs(t, err, l.tap.refuse)
	})
}

// F59: a length that is wrong, behind which other packets go on.
func TestF59APacketThatIsNeverWholeEndsTheConnectionWithinTheTimeout(t *testing.T) {
	onLink(t, func(t *testing.T, l link) {
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
	onLink(t, func(t *testing.T, l link) {
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
