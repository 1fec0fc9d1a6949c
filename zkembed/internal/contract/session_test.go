package contract

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheConnectReplyHasAReadOnlyByteIfTheRequestHadOne(t *testing.T) {
	each(t, func(t *testing.T, s target) {
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
	each(t, func(t *testing.T, s target) {
		for asked, got := range map[int32]int32{0: 200, -1: 200, 5000: 5000, 1 << 30: 600_000} {
			c := dialTCP(t, s.addr)
			_, err := c.hello(hello{timeout: asked})
			require.NoError(t, err)
			require.Equal(t, got, c.timeout)
			c.must(t, opClose, nil)
		}
	})
}

func TestAnUnknownOrClosedSessionOrAWrongPasswordIsTurnedAway(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		gone, live := s.connect(), s.connect()
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
			_, err = c.frame()
			require.Error(t, err, "the connection must be closed")
		}
	})
}

func TestAClientThatHasSeenMoreThanTheServerGetsNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := dialTCP(t, s.addr)
		_, err := c.hello(hello{timeout: 1000, seen: 1 << 60})
		require.Error(t, err)
	})
}

func TestAReconnectTakesUpTheSessionAndClosesTheOlderConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		old := s.connect()
		old.create(t, s.path("e"), ephemeral)
		c := old.again(t)
		require.Equal(t, old.session, c.session)
		require.Equal(t, old.passwd, c.passwd)
		_, err := old.frame()
		require.Error(t, err, "the older connection must be closed")
		require.Equal(t, c.session, c.stat(t, s.path("e")).owner)
		c.must(t, opClose, nil)
	})
}

func TestABrokenConnectionLeavesTheSessionAlone(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		c.create(t, s.path("e"), ephemeral)
		require.NoError(t, c.nc.Close())
		require.Equal(t, c.session, other.stat(t, s.path("e")).owner)
		c.again(t).must(t, opClose, nil)
		require.EqualValues(t, errNoNode, other.code(t, opExists, watched(s.path("e"), false)))
	})
}

func TestAConnectionThatTheServerDropsLeavesTheSessionAlone(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		c.create(t, s.path("e"), ephemeral)
		require.NoError(t, s.drop(c.session))
		_, err := c.frame()
		require.Error(t, err)
		n := c.again(t)
		require.Equal(t, c.session, n.stat(t, s.path("e")).owner)
		n.must(t, opClose, nil)
	})
}

func TestClosingASessionDeletesAllItsNodesUnderOneZxidAndThenTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		for _, dir := range []string{"a", "b"} {
			c.create(t, s.path(dir), persistent)
			c.create(t, s.path(dir+"/e"), ephemeral)
			c.create(t, s.path(dir+"/f"), ephemeral)
		}
		r, err := c.call(opClose, nil)
		require.NoError(t, err)
		require.Zero(t, r.code)
		_, err = c.frame()
		require.Error(t, err)
		for _, dir := range []string{"a", "b"} {
			st := other.stat(t, s.path(dir))
			require.Zero(t, st.children)
			require.EqualValues(t, 4, st.cversion)
			require.Equal(t, r.zxid, st.pzxid)
		}
	})
}

func TestASessionThatIsNotHeardOfExpiresWithItsNodes(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		other := s.connect()
		c := dialTCP(t, s.addr)
		begun := time.Now()
		_, err := c.hello(hello{timeout: 600})
		require.NoError(t, err)
		c.create(t, s.path("e"), ephemeral)
		other.must(t, opExists, watched(s.path("e"), true))
		for len(other.events) == 0 {
			_, _, err := other.receive()
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, time.Since(begun), 600*time.Millisecond)
		require.Equal(t, []event{{deleted, s.path("e")}}, other.takeEvents())
		_, err = c.frame()
		require.Error(t, err, "the server must close the connection of an expired session")
		n := dialTCP(t, s.addr)
		_, err = n.hello(hello{timeout: 600, session: c.session, passwd: c.passwd})
		require.NoError(t, err)
		require.Zero(t, n.session)
	})
}

func TestAPingKeepsTheSessionAlive(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := dialTCP(t, s.addr)
		_, err := c.hello(hello{timeout: 1000})
		require.NoError(t, err)
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

func TestExpiringASessionByHandIsTheSameAsItsExpiry(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		c.create(t, s.path("e"), ephemeral)
		require.NoError(t, s.end(c.session))
		zktest.Eventually(t, patience, func() bool {
			return other.code(t, opExists, watched(s.path("e"), false)) == errNoNode
		}, "the ephemeral node goes")
		n := dialTCP(t, s.addr)
		_, err := n.hello(hello{timeout: 600, session: c.session, passwd: c.passwd})
		require.NoError(t, err)
		require.Zero(t, n.session)
	})
}
