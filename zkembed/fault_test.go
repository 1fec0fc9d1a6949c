package zkembed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

func TestADroppedRequestIsNeverApplied(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		f := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Drop())
		_, err := c.Create("/a", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, 1, f.Fired())
		require.Empty(t, s.Nodes())
		awaitQuiet(c)
		create(t, c, "/b", 0)
		require.Equal(t, []string{"/b"}, paths(s))
	})
}

func TestALostReplyHidesThatTheRequestWasApplied(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		id := c.SessionID()
		f := s.Inject(zkembed.Match{PathPrefix: "/a", Times: 1}, zkembed.LoseReply())
		_, err := c.Create("/a", nil, zk.FlagEphemeral, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		<-f.Struck()
		awaitQuiet(c)
		ok, stat, err := c.Exists("/a")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, id, stat.EphemeralOwner)
		require.Equal(t, id, c.SessionID(), "the session must have survived")
	})
}

func TestADelayedRequestIsAppliedLate(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		f := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.Delay(3*time.Second))
		begun := time.Now()
		go func() {
			<-f.Struck()
			time.Sleep(2 * time.Second)
			require.Empty(t, s.Nodes())
		}()
		create(t, c, "/a", 0)
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestADelayedReplyComesLateForWhatIsAppliedAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.DelayReply(3*time.Second))
		begun := time.Now()
		go create(t, c, "/a", 0)
		synctest.Wait()
		require.Len(t, s.Nodes(), 1)
		_, _, err := c.Get("/a")
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(begun), "what is behind the reply must wait for it")
	})
}

func TestAnErrorInsteadOfAReplyMeansNotApplied(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		zxid := s.Zxid()
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.ReplyError(zkembed.CodeNoAuth))
		_, err := c.Create("/a", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Empty(t, s.Nodes())
		require.Equal(t, zxid, s.Zxid())
	})
}

func TestAHungRequestLastsUntilTheClientGivesTheConnectionUp(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		f := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Hang())
		begun := time.Now()
		_, err := c.Create("/a", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.GreaterOrEqual(t, time.Since(begun), T/3)
		require.Equal(t, 1, f.Fired())
		awaitQuiet(c)
		create(t, c, "/b", 0)
		require.Equal(t, []string{"/b"}, paths(s))
	})
}

func TestADelayedEventComesLateAndNothingOvertakesIt(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		f := s.Inject(zkembed.Match{PathPrefix: "/a"}, zkembed.DelayEvents(2*time.Second))
		_, _, events, err := c.ExistsW("/a")
		require.NoError(t, err)
		begun := time.Now()
		create(t, other, "/a", 0)
		require.Zero(t, time.Since(begun))
		ok, _, err := c.Exists("/a")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, zk.EventNodeCreated, (<-events).Type)
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Equal(t, 1, f.Fired())
	})
}

func TestAFaultStrikesOnlyWhatItMatches(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		refuse := zkembed.ReplyError(zkembed.CodeThrottledOp)
		struck := func(m zkembed.Match, f func()) int {
			fault := s.Inject(m, refuse)
			defer fault.Remove()
			f()
			return fault.Fired()
		}
		three := func() {
			for range 3 {
				_, _, _ = c.Exists("/a")
			}
		}
		require.Equal(t, 3, struck(zkembed.Match{}, three))
		require.Equal(t, 2, struck(zkembed.Match{Skip: 1}, three))
		require.Equal(t, 1, struck(zkembed.Match{Skip: 1, Times: 1}, three))
		require.Equal(t, 0, struck(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}}, three))
		require.Equal(t, 0, struck(zkembed.Match{PathPrefix: "/b"}, three))
		require.Equal(t, 0, struck(zkembed.Match{Session: other.SessionID()}, three))
		require.Equal(t, 3, struck(zkembed.Match{Session: c.SessionID()}, three))
		require.Equal(t, 0, struck(zkembed.Match{Func: func(zkembed.Request) bool { return false }}, three))
		require.Equal(t, 0, struck(zkembed.Match{}, func() { time.Sleep(T) }), "pings must pass")
		var parts []zkembed.Op
		require.Equal(t, 1, struck(zkembed.Match{PathPrefix: "/b", Func: func(r zkembed.Request) bool {
			parts = r.Parts
			return true
		}}, func() {
			_, _ = c.Multi(&zk.CheckVersionRequest{Path: "/a"}, &zk.DeleteRequest{Path: "/b/c"})
		}))
		require.Equal(t, []zkembed.Op{zkembed.OpCheck, zkembed.OpDelete}, parts)
	})
}

func TestARequestThatIsCarriedOutLateOvertakesNoneAndMovesItsSession(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		create(t, c, "/gate", 0)
		late := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1}, zkembed.CarryOutLate(T/2))
		require.ErrorIs(t, c.Delete("/gate", -1), zk.ErrConnectionClosed)
		<-late.Struck()
		awaitQuiet(c)
		require.NoError(t, c.Delete("/gate", -1))
		create(t, c, "/gate", 0)
		time.Sleep(T / 2)
		_, _, err := c.Exists("/gate")
		require.ErrorIs(t, err, zk.ErrConnectionClosed, "the session has moved")
		awaitQuiet(c)
		ok, _, err := c.Exists("/gate")
		require.NoError(t, err)
		require.False(t, ok, "the first delete came after all")
	})
}

func TestALateRequestOfASessionThatIsOverIsNotCarriedOut(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		id := c.SessionID()
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.CarryOutLate(time.Second))
		_, err := c.Create("/a", nil, zk.FlagEphemeral, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.NoError(t, s.ExpireSession(id))
		time.Sleep(2 * time.Second)
		require.Empty(t, s.Nodes())
	})
}
