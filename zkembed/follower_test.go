package zkembed_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const lag = 2 * time.Second

func exists(t *testing.T, c *zk.Conn, path string) bool {
	t.Helper()
	ok, _, err := c.Exists(path)
	require.NoError(t, err)
	return ok
}

// The leader refuses what a follower has held for long if the session has
// connected to another server since, as PrepRequestProcessor does
// (SessionMovedException).
func TestARequestThatAFollowerHeldIsRefusedOnceItsSessionIsElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		first, second := s.AddFollower(0, c.SessionID()), s.AddFollower(0, c.SessionID())
		first.Stop() // the session is at the leader, and would connect to the second
		third := s.AddFollower(0, c.SessionID())
		time.Sleep(T)
		third.Isolate()
		held := make(chan error, 1)
		go func() {
			_, err := c.Create("/held", nil, 0, zk.WorldACL(zk.PermAll))
			held <- err
		}()
		synctest.Wait()
		require.NoError(t, s.DropConn(c.SessionID()))
		require.Error(t, <-held)
		awaitQuiet(c)
		create(t, c, "/after", 0)
		third.Stop()
		second.Stop()
		require.False(t, exists(t, c, "/held"))
		create(t, c, "/last", 0)
	})
}

func TestAFollowersSessionReadsAnOldTreeUntilItSyncs(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		s.AddFollower(lag, c.SessionID())
		begun := time.Now()
		create(t, other, "/a", 0)
		require.False(t, exists(t, c, "/a"))
		require.Zero(t, time.Since(begun), "a read must not wait")
		require.NoError(t, coordtest.Err(c.Sync("/")))
		require.Equal(t, lag, time.Since(begun))
		require.True(t, exists(t, c, "/a"))
	})
}

func TestAFollowersWatchesFireLateAndBeforeTheReadThatShowsWhy(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		_, _, events, err := c.ExistsW("/a") // moves along with its connection
		require.NoError(t, err)
		s.AddFollower(lag, c.SessionID())
		begun := time.Now()
		create(t, other, "/a", 0)
		require.Equal(t, zk.EventNodeCreated, (<-events).Type)
		require.Equal(t, lag, time.Since(begun))
		require.True(t, exists(t, c, "/a"))
	})
}

func TestAFollowersOwnWriteIsAppliedAtOnceAndAcknowledgedLate(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		s.AddFollower(lag, c.SessionID())
		begun := time.Now()
		go func() {
			time.Sleep(lag / 2)
			require.True(t, exists(t, other, "/a"))
		}()
		create(t, c, "/a", 0)
		require.Equal(t, lag, time.Since(begun))
		require.True(t, exists(t, c, "/a"), "a client must see its own write")
	})
}

// As on a real server, which passes writes on as they come, and has a read wait
// for its session's earlier writes.
func TestAFollowersSessionHasManyWritesUnderWayAndReadsBehindThem(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		s.AddFollower(lag, c.SessionID())
		begun := time.Now()
		var all sync.WaitGroup
		for _, path := range []string{"/a", "/b", "/c"} {
			all.Go(func() {
				create(t, c, path, 0)
				require.Equal(t, lag, time.Since(begun), "a write waits for no other")
			})
			synctest.Wait()
		}
		require.Len(t, paths(s), 3, "carried out at once")
		require.True(t, exists(t, c, "/c"), "a client must see its own write")
		require.Equal(t, lag, time.Since(begun))
		all.Wait()
	})
}

// Answers come in order: where one is lost, those behind it are, too.
func TestNothingIsAnsweredBehindALostReplyOfAFollower(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		s.AddFollower(lag, c.SessionID())
		s.Inject(zkembed.Match{PathPrefix: "/a"}, zkembed.LoseReply())
		var all sync.WaitGroup
		for _, path := range []string{"/a", "/b", "/c"} {
			all.Go(func() {
				require.ErrorIs(t, coordtest.Err(c.Create(path, nil, 0, open)), zk.ErrConnectionClosed)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Len(t, paths(s), 3, "what was passed on is carried out")
	})
}

func TestAFollowerRefusesAClientThatHasSeenMore(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		f := s.AddFollower(lag, 0) // of sessions that do not exist yet
		create(t, c, "/a", 0)
		require.Less(t, f.Zxid(), s.Zxid())
		for _, seen := range []int64{f.Zxid(), s.Zxid()} {
			w := dialled(t, s, hello(seen))
			_, err := w.frame(time.Minute)
			require.Equal(t, seen == s.Zxid(), errors.Is(err, io.EOF), "%v", err)
			require.NoError(t, w.nc.Close())
			synctest.Wait()
		}
	})
}

func TestTheSessionsOfAnIsolatedFollowerExpireUnawares(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		f := s.AddFollower(0, id)
		time.Sleep(2 * T)
		require.Len(t, s.Sessions(), 2, "the follower must report who is alive")
		f.Isolate()
		wrote := coordtest.Go(func() error {
			time.Sleep(T / 2)
			_, err := client(t, s).Create("/f", nil, 0, open)
			return err
		})
		time.Sleep(T + 2*time.Second)
		require.NoError(t, <-wrote)
		require.False(t, exists(t, other, "/e"), "the leader has let the session expire")
		require.Equal(t, zk.StateHasSession, c.State())
		require.True(t, exists(t, c, "/e"), "the follower knows nothing of it")
		f.Rejoin()
		synctest.Wait()
		require.NotEqual(t, zk.StateHasSession, c.State())
	})
}

func TestAWriteAtAnIsolatedFollowerHangsUntilItRejoins(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		f := s.AddFollower(0)
		f.Isolate()
		begun := time.Now()
		time.AfterFunc(3*time.Second, f.Rejoin)
		create(t, c, "/a", 0)
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestAStoppedFollowerHandsItsSessionsBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		f := s.AddFollower(time.Hour, c.SessionID())
		_, _, events, err := c.ExistsW("/a")
		require.NoError(t, err)
		f.Stop()
		f.Stop()
		create(t, other, "/a", 0)
		require.Equal(t, zk.EventNodeCreated, (<-events).Type)
	})
}

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

// greeted connects and gets a session.
func greeted(t *testing.T, s *zkembed.Server) (w wire, reply []byte) {
	t.Helper()
	w = dialled(t, s, hello(0))
	reply, err := w.frame(time.Second)
	require.NoError(t, err)
	return w, reply
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

// code is the error code of the next reply, which must come immediately.
func (w wire) code() zkembed.Code {
	w.t.Helper()
	b, err := w.frame(time.Millisecond)
	require.NoError(w.t, err)
	return zkembed.Code(binary.BigEndian.Uint32(b[12:16]))
}

// rehello asks for the session that a connect reply has given.
func rehello(reply []byte) []byte {
	b := make([]byte, 44)
	copy(b[12:], reply[4:16])  // timeout and id
	copy(b[24:], reply[16:36]) // password
	return frame(b)
}

func sessionOf(reply []byte) int64 { return int64(binary.BigEndian.Uint64(reply[8:])) }

func TestASessionThatWaitedForAFollowerGoesToTheLeaderWhenTheFollowerStops(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		first, reply := greeted(t, s)
		f := s.AddFollower(0)
		f.Isolate()
		require.NoError(t, first.nc.Close())
		w, fresh := dialled(t, s, rehello(reply)), dialled(t, s, hello(0))
		synctest.Wait() // both wait for the follower, which is cut off
		f.Stop()
		for _, c := range []wire{w, fresh} {
			require.NoError(t, coordtest.Err(c.frame(time.Second)))
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
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		first, reply := greeted(t, s)
		require.NoError(t, first.nc.Close())
		p := s.Partition(zkembed.Cut{Sessions: []int64{sessionOf(reply)}})
		w := dialled(t, s, rehello(reply))
		synctest.Wait()
		f := s.AddFollower(time.Second, sessionOf(reply))
		f.Isolate()
		p.Heal()
		require.Error(t, coordtest.Err(w.frame(time.Second)), "its follower is cut off")
		f.Rejoin()
		require.NoError(t, coordtest.Err(w.frame(2*time.Second)))
		f.Isolate()
		w.send(packet(zkembed.OpSync, jute("/")))
		require.Error(t, coordtest.Err(w.frame(time.Second)), "the session must be at the follower")
	})
}

func TestAReplyMayBeLateEvenWhenItIsTheLastOfItsConnection(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		w, _ := greeted(t, s)
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCloseSession}}, zkembed.DelayReply(time.Minute))
		begun := time.Now()
		w.send(packet(zkembed.OpCloseSession, nil))
		require.NoError(t, coordtest.Err(w.frame(time.Hour)))
		require.Equal(t, time.Minute, time.Since(begun))
		require.Error(t, coordtest.Err(w.frame(time.Hour)))
		require.Equal(t, time.Minute, time.Since(begun), "the connection must end behind it")
	})
}

func TestAPartitionHoldsTheLastRepliesOfAConnectionUntilItHeals(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		w, _ := greeted(t, s)
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
		inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
			w, _ := greeted(t, s)
			w.send(packet(first, nil))
			synctest.Wait()
			if first == zkembed.OpPing {
				w.send(packet(zkembed.OpCloseSession, nil))
			}
			time.Sleep(time.Minute)
			require.ErrorIs(t, coordtest.Err(w.nc.Write([]byte{0})), io.ErrClosedPipe)
		})
	}
}

func TestAFollowerHoweverFarBehindIsUpToDateWhenItStops(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		f := s.AddFollower(1<<63 - 1)
		w := dialled(t, s, hello(0))
		require.Error(t, coordtest.Err(w.frame(time.Minute)), "the follower must not know the session yet")
		f.Stop()
		require.NoError(t, coordtest.Err(w.frame(time.Second)))
		require.Equal(t, s.Zxid(), f.Zxid())
	})
}

// nameless is a connection as a test may make one up.
type nameless struct{ net.Conn }

func (nameless) RemoteAddr() net.Addr { return nil }

func TestAConnectionNeedsNoAddress(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		near, far := net.Pipe()
		go s.ServeConn(nameless{far})
		w := wire{t, near}
		w.send(hello(0))
		require.NoError(t, coordtest.Err(w.frame(time.Second)))
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
