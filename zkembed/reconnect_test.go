package zkembed_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

// wire is a connection whose client is the test itself.
type wire struct {
	t  *testing.T
	nc net.Conn
}

// dialled connects and sends a connect request.
func dialled(t *testing.T, s *zkembed.Server, hello []byte) wire {
	t.Helper()
	nc, err := s.Dial("", "", time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	w := wire{t, nc}
	w.send(hello)
	return w
}

func (w wire) send(b []byte) {
	w.t.Helper()
	_, err := w.nc.Write(b)
	require.NoError(w.t, err)
}

// frame reads one packet that comes within patience.
func (w wire) frame(patience time.Duration) ([]byte, error) {
	if err := w.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(w.nc, head); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(w.nc, b)
	return b, err
}

// code is the error code of the next reply, which is to come at once.
func (w wire) code() zkembed.Code {
	w.t.Helper()
	b, err := w.frame(time.Millisecond)
	require.NoError(w.t, err)
	return zkembed.Code(binary.BigEndian.Uint32(b[12:16]))
}

// rehello asks for the session that a connect reply has given.
func rehello(reply []byte) []byte {
	b := make([]byte, 44)
	copy(b[12:], reply[4:16])  // time-out and id
	copy(b[24:], reply[16:36]) // password
	return frame(b)
}

func sessionOf(reply []byte) int64 { return int64(binary.BigEndian.Uint64(reply[8:])) }

func TestASessionThatWaitedForAFollowerGoesToTheLeaderWhenTheFollowerStops(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		first := dialled(t, s, hello(0))
		reply, err := first.frame(time.Second)
		require.NoError(t, err)
		f := s.AddFollower(0)
		f.Isolate()
		require.NoError(t, first.nc.Close())
		w, fresh := dialled(t, s, rehello(reply)), dialled(t, s, hello(0))
		synctest.Wait() // both wait for the follower, which is cut off
		f.Stop()
		for _, c := range []wire{w, fresh} {
			_, err = c.frame(time.Second)
			require.NoError(t, err)
		}
		create(t, client(t, s), "/later", 0)
		w.send(packet(zkembed.OpExists, append(jute("/later"), 1)))
		require.Equal(t, zkembed.CodeOK, w.code(), "the tree must be that of the leader")
		w.send(packet(zkembed.OpSync, jute("/")))
		require.Equal(t, zkembed.CodeOK, w.code())
		require.Equal(t, []string{"/later"}, s.Watched())
		for range 4 {
			time.Sleep(4 * time.Second)
			w.send(packet(zkembed.OpPing, nil))
			require.Equal(t, zkembed.CodeOK, w.code())
		}
		require.Contains(t, sessionIDs(s), sessionOf(reply), "its pings must have been heard")
	})
}

func TestASessionThatWaitedInAPartitionGoesToTheFollowerThatCameMeanwhile(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		first := dialled(t, s, hello(0))
		reply, err := first.frame(time.Second)
		require.NoError(t, err)
		require.NoError(t, first.nc.Close())
		p := s.Partition(zkembed.Cut{Sessions: []int64{sessionOf(reply)}})
		w := dialled(t, s, rehello(reply))
		synctest.Wait()
		f := s.AddFollower(time.Second, sessionOf(reply))
		f.Isolate()
		p.Heal()
		_, err = w.frame(time.Second)
		require.Error(t, err, "its follower is cut off")
		f.Rejoin()
		_, err = w.frame(2 * time.Second)
		require.NoError(t, err)
		f.Isolate()
		w.send(packet(zkembed.OpSync, jute("/")))
		_, err = w.frame(time.Second)
		require.Error(t, err, "the session must be at the follower")
	})
}

func TestAReplyMayBeLateEvenWhenItIsTheLastOfItsConnection(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		w := dialled(t, s, hello(0))
		_, err := w.frame(time.Second)
		require.NoError(t, err)
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCloseSession}}, zkembed.DelayReply(time.Minute))
		begun := time.Now()
		w.send(packet(zkembed.OpCloseSession, nil))
		_, err = w.frame(time.Hour)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(begun))
		_, err = w.frame(time.Hour)
		require.Error(t, err)
		require.Equal(t, time.Minute, time.Since(begun), "the connection must end behind it")
	})
}

func TestAPartitionHoldsTheLastRepliesOfAConnectionUntilItHeals(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		w := dialled(t, s, hello(0))
		_, err := w.frame(time.Second)
		require.NoError(t, err)
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToClient})
		w.send(packet(zkembed.OpPing, nil))
		w.send(packet(zkembed.OpCloseSession, nil))
		time.Sleep(time.Minute)
		require.Empty(t, s.Sessions())
		p.Heal()
		require.Equal(t, zkembed.CodeOK, w.code())
		require.Equal(t, zkembed.CodeOK, w.code())
	})
}

// Also when the server waited for the client before the end came.
func TestAClientThatDoesNotReadDoesNotKeepAClosingConnection(t *testing.T) {
	for _, first := range []zkembed.Op{zkembed.OpPing, zkembed.OpCloseSession} {
		virtual(t, func(t *testing.T, s *zkembed.Server) {
			w := dialled(t, s, hello(0))
			_, err := w.frame(time.Second)
			require.NoError(t, err)
			w.send(packet(first, nil))
			synctest.Wait()
			if first == zkembed.OpPing {
				w.send(packet(zkembed.OpCloseSession, nil))
			}
			time.Sleep(time.Minute)
			_, err = w.nc.Write([]byte{0})
			require.ErrorIs(t, err, io.ErrClosedPipe)
		})
	}
}

func TestAFollowerHoweverFarBehindIsUpToDateWhenItStops(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		f := s.AddFollower(1<<63 - 1)
		w := dialled(t, s, hello(0))
		_, err := w.frame(time.Minute)
		require.Error(t, err, "the follower must not know the session yet")
		f.Stop()
		_, err = w.frame(time.Second)
		require.NoError(t, err)
		require.Equal(t, s.Zxid(), f.Zxid())
	})
}

// nameless is a connection as a test may make one up.
type nameless struct{ net.Conn }

func (nameless) RemoteAddr() net.Addr { return nil }

func TestAConnectionNeedsNoAddress(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		near, far := net.Pipe()
		go s.ServeConn(nameless{far})
		w := wire{t, near}
		w.send(hello(0))
		_, err := w.frame(time.Second)
		require.NoError(t, err)
		require.Equal(t, "unknown", s.Sessions()[0].Remote)
		for _, word := range []string{"stat", "cons"} {
			require.Contains(t, fourLetters(t, s, word), "/unknown[1]")
		}
		require.NoError(t, near.Close())
	})
}

func fourLetters(t *testing.T, s *zkembed.Server, word string) string {
	t.Helper()
	w := dialled(t, s, []byte(word))
	answer, err := io.ReadAll(w.nc)
	require.NoError(t, err)
	return string(answer)
}

func TestTheConfigurationNamesThePortOfAnIPv6AddressToo(t *testing.T) {
	s, err := zkembed.Start(zkembed.WithAddr("[::1]:0"))
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	require.Contains(t, fourLetters(t, s, "conf"), "clientPort="+port+"\n")
}
