package zkembed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestARestartKeepsTreeSessionsAndZxid(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		_, _, gone, err := c.ExistsW("/e")
		require.NoError(t, err)
		zxid := s.Zxid()
		s.Restart(5 * T) // no session ages while the server is down
		awaitQuiet(c)
		require.Equal(t, id, ownerOf(t, c, "/e"))
		require.Equal(t, zxid, s.Zxid())
		require.NoError(t, c.Delete("/e", -1))
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type, "the watch must have been set again")
	})
}

func TestAStoppedServerServesNoClientAndExpiresNoSession(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		create(t, c, "/e", zk.FlagEphemeral)
		s.Stop()
		require.Error(t, coordtest.Err(s.Dial("tcp", s.Addr(), time.Second)))
		time.Sleep(10 * T)
		require.Len(t, s.Nodes(), 1)
		_, _, err := c.Exists("/e")
		require.Error(t, err)
		s.Resume()
		awaitQuiet(c)
		_, _, err = c.Exists("/e")
		require.NoError(t, err)
	})
}

func TestAnExpiredSessionLosesItsNodesAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		create(t, c, "/e", zk.FlagEphemeral)
		_, _, gone, err := other.ExistsW("/e")
		require.NoError(t, err)
		id := c.SessionID()
		require.NoError(t, s.ExpireSession(id))
		require.Error(t, s.ExpireSession(id))
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
		awaitQuiet(c)
		_, _, err = c.Exists("/e") // in the next session
		require.NoError(t, err)
		require.NotEqual(t, id, c.SessionID())
	})
}

func TestADroppedConnectionIsTakenUpAgain(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		require.NoError(t, s.DropConn(id))
		synctest.Wait()
		require.False(t, s.Sessions()[0].Connected)
		awaitQuiet(c)
		require.Equal(t, 1, s.DropConns())
		require.Zero(t, s.DropConns(), "they are gone already")
		awaitQuiet(c)
		require.Equal(t, id, ownerOf(t, c, "/e"))
		require.Error(t, s.DropConn(1))
	})
}

func TestAMovedSessionLosesItsConnectionOnceAndIsTakenUpAgain(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		require.NoError(t, s.MoveSession(id))
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), zk.ErrConnectionClosed)
		require.Empty(t, s.Nodes())
		awaitQuiet(c)
		create(t, c, "/a", zk.FlagEphemeral)
		require.Equal(t, id, s.Nodes()[0].Stat.EphemeralOwner)
		require.Error(t, s.MoveSession(1))
	})
}

func TestAMovedSessionCanBeClosedOnItsOldConnection(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		w, reply := greeted(t, s)
		require.NoError(t, s.MoveSession(sessionOf(reply)))
		w.send(packet(zkembed.OpCloseSession, nil))
		require.Equal(t, zkembed.CodeOK, w.code())
		require.Empty(t, s.Sessions())
	})
}

func TestTheReaperTakesEmptiedContainersAndOutlivedTTLNodes(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		for _, p := range []string{"/unused", "/used", "/busy"} {
			require.NoError(t, coordtest.Err(c.CreateContainer(p, nil, zk.FlagContainer, open)))
		}
		create(t, c, "/used/x", 0)
		require.NoError(t, c.Delete("/used/x", -1))
		create(t, c, "/busy/x", 0)
		require.NoError(t, coordtest.Err(c.CreateTTL("/ttl", nil, zk.FlagTTL, open, 5*time.Second)))
		zxid := s.Zxid()
		require.Equal(t, 1, s.Reap())
		require.Equal(t, zxid+1, s.Zxid())
		require.Equal(t, []string{"/busy", "/busy/x", "/ttl", "/unused"}, paths(s))
		time.Sleep(4 * time.Second)
		require.NoError(t, coordtest.Err(c.Set("/ttl", nil, -1)))
		time.Sleep(4 * time.Second)
		require.Zero(t, s.Reap(), "a write must renew the time to live")
		_, _, gone, err := c.ExistsW("/ttl")
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type, "the reaper must come by itself")
	})
}

func TestAStoppedServerReapsNothing(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		require.NoError(t, coordtest.Err(c.CreateTTL("/ttl", nil, zk.FlagTTL, open, time.Second)))
		zxid := s.Zxid()
		s.Stop()
		time.Sleep(10 * time.Minute)
		require.Zero(t, s.Reap())
		require.Equal(t, []string{"/ttl"}, paths(s))
		require.Equal(t, zxid, s.Zxid())
		s.Resume()
		require.Equal(t, 1, s.Reap())
	})
}

func TestNearTheEndOfTheNumbersTheSequenceSticks(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		create(t, c, "/d", 0)
		require.NoError(t, s.SetSequence("/d", 2147483646))
		require.Equal(t, "/d/a-2147483646", create(t, c, "/d/a-", zk.FlagSequence))
		for _, name := range []string{"b", "c", "d"} {
			require.Equal(t, "/d/"+name+"-2147483647", create(t, c, "/d/"+name+"-", zk.FlagSequence))
		}
		require.ErrorIs(t, coordtest.Err(c.Create("/d/d-", nil, zk.FlagSequence, open)), zk.ErrNodeExists)
		require.Error(t, s.SetSequence("/none", 1))
		require.Error(t, s.SetSequence("/d", -5))
	})
}

func TestRequestsAreCountedByOperationAndSession(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		before, mine := s.Counts(), s.SessionCounts(c.SessionID())
		create(t, c, "/a", 0)
		_, _, _, err := other.GetW("/a")
		require.NoError(t, err)
		require.NoError(t, coordtest.Err(c.Set("/a", nil, -1)))
		time.Sleep(T)
		cost := s.SessionCounts(c.SessionID()).Since(mine)
		delete(cost, zkembed.OpPing)
		require.Equal(t, zkembed.Counts{zkembed.OpCreate: 1, zkembed.OpSetData: 1}, cost)
		all := s.Counts().Since(before)
		require.Equal(t, 3, all.Total())
		require.Equal(t, 1, all[zkembed.OpNotify])
		require.NotZero(t, all[zkembed.OpPing])
		require.Nil(t, s.SessionCounts(1))
	})
}

func TestTheServerShowsItsNodesSessionsAndWatches(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		require.NoError(t, coordtest.Err(c.Create("/e", []byte("x"), zk.FlagEphemeral, open)))
		_, _, _, err := c.GetW("/e")
		require.NoError(t, err)
		_, _, _, err = c.ChildrenW("/e")
		require.NoError(t, err)
		n := s.Nodes()[0]
		require.Equal(t, zkembed.Ephemeral, n.Kind)
		require.Equal(t, "ephemeral", n.Kind.String())
		require.Equal(t, "x", string(n.Data))
		require.Equal(t, c.SessionID(), n.Stat.EphemeralOwner)
		i := s.Sessions()[0]
		require.Equal(t, zkembed.SessionInfo{
			ID: c.SessionID(), Timeout: T, Expires: i.Expires, Connected: true, Remote: i.Remote,
			Ephemerals: []string{"/e"}, Watches: 2,
		}, i)
		require.Equal(t, 2, s.WatchCount())
		require.Equal(t, []string{"/e"}, s.Watched())
		c.Close()
		synctest.Wait()
		require.Zero(t, s.WatchCount())
		require.Empty(t, s.Nodes())
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var open = zk.WorldACL(zk.PermAll)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// hosts names one server for ever, and asks go-zookeeper to pause after every
// attempt: without the pause virtual time stands still.
type hosts string

func (h hosts) Init([]string) error  { return nil }
func (h hosts) Len() int             { return 1 }
func (h hosts) Next() (string, bool) { return string(h), true }
func (h hosts) Connected()           {}

// start runs a server for one test.
func start(t *testing.T, opts ...zkembed.Option) *zkembed.Server {
	t.Helper()
	s, err := zkembed.Start(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// inVirtualTime runs a test in virtual time, on a server without TCP.
func inVirtualTime(t *testing.T, f func(t *testing.T, s *zkembed.Server)) {
	virtual.Test(t, func(t *testing.T) {
		f(t, start(t, zkembed.WithAddr(""), zkembed.WithTick(time.Second)))
	})
}

// withClient runs a test in virtual time, with a client that has a session.
func withClient(t *testing.T, f func(t *testing.T, s *zkembed.Server, c *zk.Conn)) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) { f(t, s, client(t, s)) })
}

// T is the session timeout of the tests' clients.
const T = 10 * time.Second

// client connects go-zookeeper and returns when it has a session.
func client(t *testing.T, s *zkembed.Server) *zk.Conn {
	t.Helper()
	session := make(chan struct{}, 100)
	c, events, err := zk.Connect([]string{s.Addr()}, T,
		zk.WithDialer(s.Dial), zk.WithLogger(quiet{}), zk.WithHostProvider(hosts(s.Addr())),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				session <- struct{}{}
			}
		}))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	<-session
	return c
}

func create(t *testing.T, c *zk.Conn, path string, flags int32) string {
	t.Helper()
	p, err := c.Create(path, nil, flags, open)
	require.NoError(t, err)
	return p
}

// ownerOf is the session of a node that a client sees.
func ownerOf(t *testing.T, c *zk.Conn, path string) int64 {
	t.Helper()
	ok, stat, err := c.Exists(path)
	require.NoError(t, err)
	require.True(t, ok)
	return stat.EphemeralOwner
}

// awaitQuiet waits, in virtual time, until a client is connected and quiet.
// go-zookeeper fails requests while it is not connected, and it races with
// itself (over its last zxid) when they meet its setWatches.
func awaitQuiet(c *zk.Conn) {
	for synctest.Wait(); c.State() != zk.StateHasSession; synctest.Wait() {
		time.Sleep(100 * time.Millisecond)
	}
}

// paths are the nodes of a server.
func paths(s *zkembed.Server) []string {
	out := []string{}
	for _, n := range s.Nodes() {
		out = append(out, n.Path)
	}
	return out
}
