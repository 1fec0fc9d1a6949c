package contract

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func TestTheConnectReplyHasAReadOnlyByteIfTheRequestHadOne(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		for _, with := range []bool{false, true} {
			c := dialTCP(t, s.addr)
			n, err := c.hello(hello{timeout: 1000, readOnly: with})
			require.NoError(t, err)
			require.Equal(t, map[bool]int{false: 36, true: 37}[with], n)
			require.NotZero(t, c.session)
			require.Len(t, c.passwd, 16)
			c.must(t, opClose, nil)
		}
	})
}

func TestSessionTimeoutsAreKeptWithinTheServersBounds(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		for asked, got := range map[int32]int32{0: 200, -1: 200, 5000: 5000, 1 << 30: 600_000} {
			c := greet(t, s.addr, hello{timeout: asked})
			require.Equal(t, got, c.timeout)
			c.must(t, opClose, nil)
		}
	})
}

func TestAnUnknownOrClosedSessionOrAWrongPasswordIsTurnedAway(t *testing.T) {
	each(t, func(t *testing.T, s target, live *raw) {
		gone := s.connect()
		gone.must(t, opClose, nil)
		for _, h := range []hello{
			{timeout: 1000, session: gone.session, passwd: gone.passwd},
			{timeout: 1000, session: 12345},
			{timeout: 1000, session: live.session},
		} {
			c := dialTCP(t, s.addr)
			n, err := c.hello(h)
			require.NoError(t, err)
			require.Equal(t, 36, n)
			require.Zero(t, c.session)
			require.Zero(t, c.timeout)
			require.Equal(t, make([]byte, 16), c.passwd)
			require.Error(t, coordtest.Err(c.frame()), "the connection must be closed")
		}
	})
}

func TestAClientThatHasSeenMoreThanTheServerGetsNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		c := dialTCP(t, s.addr)
		require.Error(t, coordtest.Err(c.hello(hello{timeout: 1000, seen: 1 << 60})))
	})
}

func TestAReconnectTakesUpTheSessionAndClosesTheOlderConnection(t *testing.T) {
	each(t, func(t *testing.T, s target, old *raw) {
		old.create(t, s.path("e"), ephemeral)
		c := old.again(t)
		require.Equal(t, old.session, c.session)
		require.Equal(t, old.passwd, c.passwd)
		require.Error(t, coordtest.Err(old.frame()), "the older connection must be closed")
		require.Equal(t, c.session, c.stat(t, s.path("e")).owner)
		c.must(t, opClose, nil)
	})
}

func TestABrokenConnectionLeavesTheSessionAlone(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		c.create(t, s.path("e"), ephemeral)
		require.NoError(t, c.nc.Close())
		require.Equal(t, c.session, other.stat(t, s.path("e")).owner)
		c.again(t).must(t, opClose, nil)
		require.EqualValues(t, errNoNode, other.code(t, opExists, watched(s.path("e"), false)))
	})
}

func TestClosingASessionDeletesAllItsNodesUnderOneZxidAndThenTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		for _, dir := range []string{"a", "b"} {
			c.create(t, s.path(dir), persistent)
			c.create(t, s.path(dir+"/e"), ephemeral)
			c.create(t, s.path(dir+"/f"), ephemeral)
		}
		r, err := c.call(opClose, nil)
		require.NoError(t, err)
		require.Zero(t, r.code)
		require.Error(t, coordtest.Err(c.frame()))
		for _, dir := range []string{"a", "b"} {
			st := other.stat(t, s.path(dir))
			require.Zero(t, st.children)
			require.EqualValues(t, 4, st.cversion)
			require.Equal(t, r.zxid, st.pzxid)
		}
	})
}

func TestASessionThatIsNotHeardOfExpiresWithItsNodes(t *testing.T) {
	each(t, func(t *testing.T, s target, other *raw) {
		begun := time.Now()
		c := greet(t, s.addr, hello{timeout: 600})
		c.create(t, s.path("e"), ephemeral)
		other.must(t, opExists, watched(s.path("e"), true))
		for len(other.events) == 0 {
			_, _, err := other.receive()
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, time.Since(begun), 600*time.Millisecond)
		require.Equal(t, []event{{deleted, s.path("e")}}, other.takeEvents())
		require.Error(t, coordtest.Err(c.frame()), "the server must close the connection of an expired session")
		n := greet(t, s.addr, hello{timeout: 600, session: c.session, passwd: c.passwd})
		require.Zero(t, n.session)
	})
}

func TestAPingKeepsTheSessionAlive(t *testing.T) {
	each(t, func(t *testing.T, s target, _ *raw) {
		c := greet(t, s.addr, hello{timeout: 1000})
		c.create(t, s.path("e"), ephemeral)
		beat := time.NewTicker(50 * time.Millisecond)
		defer beat.Stop()
		for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); <-beat.C {
			c.must(t, opPing, nil)
		}
		require.Equal(t, c.session, c.stat(t, s.path("e")).owner)
		c.must(t, opClose, nil)
	})
}

func TestAWatchFiresOnceAndBeforeTheReplyThatShowsItsCause(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		a := s.path("a")
		require.EqualValues(t, errNoNode, c.code(t, opExists, watched(a, true)))
		c.must(t, opGetChildren, watched(s.root, true))
		other.create(t, a, persistent)
		c.must(t, opGetData, watched(a, true))
		require.Equal(t, []event{{created, a}, {childrenChanged, s.root}}, c.takeEvents())
		other.set(t, a, nil)
		other.set(t, a, nil)
		require.EqualValues(t, 2, c.stat(t, a).version)
		require.Equal(t, []event{{changed, a}}, c.takeEvents())
	})
}

func TestAClientHearsOfItsOwnWriteBeforeTheReply(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		c.must(t, opGetChildren, watched(s.root, true))
		c.create(t, s.path("a"), persistent)
		require.Equal(t, []event{{childrenChanged, s.root}}, c.takeEvents())
	})
}

func TestADeletionIsReportedOnceToAWatcherOfDataAndChildren(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		a := s.path("a")
		other.create(t, a, persistent)
		c.must(t, opGetData, watched(a, true))
		c.must(t, opGetChildren, watched(a, true))
		c.must(t, opGetChildren2, watched(s.root, true))
		other.delete(t, a)
		require.Equal(t, []event{{deleted, a}, {childrenChanged, s.root}}, c.flush(t))
		other.create(t, a, persistent)
		require.Empty(t, c.flush(t))
	})
}

func TestOnlyExistsWatchesANodeThatIsNotThere(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		a := s.path("a")
		require.EqualValues(t, errNoNode, c.code(t, opGetData, watched(a, true)))
		require.EqualValues(t, errNoNode, c.code(t, opGetChildren, watched(a, true)))
		other.create(t, a, persistent)
		other.set(t, a, nil)
		other.delete(t, a)
		require.Empty(t, c.flush(t))
	})
}

func TestWatchesGoWithTheirConnection(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		c.must(t, opGetChildren, watched(s.root, true))
		c = c.again(t)
		other.create(t, s.path("a"), persistent)
		require.Empty(t, c.flush(t))
		c.must(t, opClose, nil)
	})
}

func TestSetWatchesReportsWhatWasMissedAndArmsTheRest(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		for _, n := range []string{"same", "set", "gone", "grown"} {
			c.create(t, s.path(n), persistent)
		}
		seen := c.zxid
		other.set(t, s.path("set"), nil)
		other.delete(t, s.path("gone"))
		other.create(t, s.path("grown/child"), persistent)
		other.create(t, s.path("new"), persistent)
		c.must(t, opSetWatches, enc{}.i64(seen).
			strs([]string{s.path("same"), s.path("set"), s.path("gone"), s.path("grown")}).
			strs([]string{s.path("new"), s.path("never")}).
			strs([]string{s.path("same"), s.path("grown"), s.path("gone")}))
		require.Equal(t, []event{
			{changed, s.path("set")},
			{deleted, s.path("gone")},
			{created, s.path("new")},
			{childrenChanged, s.path("grown")},
			{deleted, s.path("gone")},
		}, c.takeEvents())
		other.set(t, s.path("same"), nil)
		other.set(t, s.path("grown"), nil)
		other.create(t, s.path("same/child"), persistent)
		other.create(t, s.path("never"), persistent)
		require.Equal(t, []event{
			{changed, s.path("same")},
			{changed, s.path("grown")},
			{childrenChanged, s.path("same")},
			{created, s.path("never")},
		}, c.flush(t))
	})
}

func TestAPersistentWatchStaysAndARecursiveOneCoversWhatIsBelow(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		deep, other := s.connect(), s.connect()
		a := s.path("a")
		c.must(t, opAddWatch, enc{}.str(a).i32(0))
		deep.must(t, opAddWatch, enc{}.str(a).i32(1))
		for range 2 {
			other.create(t, a, persistent)
			other.create(t, a+"/b", persistent)
			other.set(t, a+"/b", nil)
			other.delete(t, a+"/b")
			other.delete(t, a)
			require.Equal(t, []event{{created, a}, {childrenChanged, a}, {childrenChanged, a}, {deleted, a}}, c.flush(t))
			require.Equal(t, []event{
				{created, a}, {created, a + "/b"}, {changed, a + "/b"}, {deleted, a + "/b"}, {deleted, a},
			}, deep.flush(t))
		}
	})
}

func TestARemovedWatchIsSilent(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		a := s.path("a")
		other.create(t, a, persistent)
		require.EqualValues(t, errNoWatcher, c.code(t, opCheckWatches, versioned(a, 2)))
		c.must(t, opGetData, watched(a, true))
		c.must(t, opGetChildren, watched(a, true))
		c.must(t, opCheckWatches, versioned(a, 2))
		c.must(t, opRemoveWatches, versioned(a, 2))
		require.EqualValues(t, errNoWatcher, c.code(t, opRemoveWatches, versioned(a, 2)))
		other.set(t, a, nil)
		other.create(t, a+"/b", persistent)
		require.Equal(t, []event{{childrenChanged, a}}, c.flush(t))
		c.must(t, opAddWatch, enc{}.str(a).i32(1))
		c.must(t, opRemoveWatches, versioned(a, 3))
		other.set(t, a, nil)
		require.Empty(t, c.flush(t))
	})
}

// The fix of CVE-2024-23944 (3.8.4, 3.9.2, Debian's 3.8.0) reaches further
// than persistent watches.
func TestAClientThatMayNotReadANodeGetsNoEventOfIt(t *testing.T) {
	each(t, func(t *testing.T, s target, c *raw) {
		other := s.connect()
		hidden := s.path("hidden")
		c.must(t, opExists, watched(s.root, true))
		require.EqualValues(t, errNoNode, c.code(t, opExists, watched(hidden, true)))
		other.must(t, opCreate, create(hidden, nil, []acl{{30, "world", "anyone"}}, persistent))
		c.must(t, opExists, watched(hidden, true))
		other.set(t, hidden, nil)
		c.must(t, opExists, watched(hidden, true))
		other.delete(t, hidden)
		require.Empty(t, c.flush(t))
	})
}
