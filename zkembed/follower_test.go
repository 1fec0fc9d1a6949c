package zkembed_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

const lag = 2 * time.Second

func exists(t *testing.T, c *zk.Conn, path string) bool {
	t.Helper()
	ok, _, err := c.Exists(path)
	require.NoError(t, err)
	return ok
}

func TestAFollowersSessionReadsAnOldTreeUntilItSyncs(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		s.AddFollower(lag, c.SessionID())
		begun := time.Now()
		create(t, other, "/a", 0)
		require.False(t, exists(t, c, "/a"))
		require.Zero(t, time.Since(begun), "a read must not wait")
		_, err := c.Sync("/")
		require.NoError(t, err)
		require.Equal(t, lag, time.Since(begun))
		require.True(t, exists(t, c, "/a"))
	})
}

func TestAFollowersWatchesFireLateAndBeforeTheReadThatShowsWhy(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
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
	virtual(t, func(t *testing.T, s *zkembed.Server) {
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
// for those that its session sent before it.
func TestAFollowersSessionHasManyWritesUnderWayAndReadsBehindThem(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
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
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		s.AddFollower(lag, c.SessionID())
		s.Inject(zkembed.Match{PathPrefix: "/a"}, zkembed.LoseReply())
		var all sync.WaitGroup
		for _, path := range []string{"/a", "/b", "/c"} {
			all.Go(func() {
				_, err := c.Create(path, nil, 0, open)
				require.ErrorIs(t, err, zk.ErrConnectionClosed)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Len(t, paths(s), 3, "what was passed on is carried out")
	})
}

func TestAFollowerRefusesAClientThatHasSeenMore(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		f := s.AddFollower(lag, 0) // of sessions that do not exist yet
		create(t, c, "/a", 0)
		require.Less(t, f.Zxid(), s.Zxid())
		for _, seen := range []int64{f.Zxid(), s.Zxid()} {
			nc, err := s.Dial("", "", time.Second)
			require.NoError(t, err)
			_, err = nc.Write(hello(seen))
			require.NoError(t, err)
			_, err = io.ReadFull(nc, make([]byte, 40))
			require.Equal(t, seen == s.Zxid(), err != nil, "%v", err)
			require.NoError(t, nc.Close())
			synctest.Wait()
		}
	})
}

func TestTheSessionsOfAnIsolatedFollowerExpireUnawares(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		f := s.AddFollower(0, id)
		time.Sleep(2 * T)
		require.Len(t, s.Sessions(), 2, "the follower must report who is alive")
		f.Isolate()
		wrote := make(chan error, 1)
		go func() {
			time.Sleep(T / 2)
			_, err := client(t, s).Create("/f", nil, 0, open)
			wrote <- err
		}()
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
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		f := s.AddFollower(0)
		f.Isolate()
		begun := time.Now()
		time.AfterFunc(3*time.Second, f.Rejoin)
		create(t, c, "/a", 0)
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestAStoppedFollowerHandsItsSessionsBack(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
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
