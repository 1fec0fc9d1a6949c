package zkembed_test

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestASessionLivesByItsPingsAndEndsInAPartition(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		create(t, c, "/e", zk.FlagEphemeral)
		time.Sleep(10 * time.Minute)
		require.Len(t, s.Nodes(), 1)
		p := s.Partition(zkembed.Cut{})
		require.False(t, p.Struck())
		time.Sleep(T + 2*time.Second)
		require.True(t, p.Struck())
		require.Empty(t, s.Nodes())
		require.Empty(t, s.Sessions())
		p.Heal()
		awaitQuiet(c)
		create(t, c, "/e", zk.FlagEphemeral) // in a new session
		require.Len(t, s.Sessions(), 1)
	})
}

func TestAPartitionShorterThanTheTimeoutKeepsTheSession(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		other := s.Partition(zkembed.Cut{Sessions: []int64{id + 1}})
		s.Partition(zkembed.Cut{})
		time.Sleep(T / 3)
		s.Heal()
		require.False(t, other.Struck(), "it cuts no client off")
		_, stat, err := c.Exists("/e")
		require.NoError(t, err)
		require.Equal(t, id, stat.EphemeralOwner)
	})
}

func TestWithTheWayBackCutWritesAreAppliedUnheard(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToClient})
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), zk.ErrConnectionClosed)
		require.Equal(t, []string{"/a"}, paths(s))
		p.Heal()
	})
}

func TestWithTheWayThereCutWritesArriveAfterTheHealing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToServer})
		go create(t, c, "/a", 0)
		time.Sleep(time.Second)
		require.Empty(t, s.Nodes())
		p.Heal()
		synctest.Wait()
		require.Len(t, s.Nodes(), 1)
	})
}

// A client that gives up its connection in the partition cannot take back
// what it had sent.
func TestAWriteOfAClientThatHasGoneArrivesAfterTheHealing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Sessions: []int64{c.SessionID()}})
		require.ErrorIs(t, coordtest.Err(c.Create("/late", nil, 0, open)), zk.ErrConnectionClosed)
		require.Empty(t, s.Nodes())
		p.Heal()
		synctest.Wait()
		require.Equal(t, []string{"/late"}, paths(s))
	})
}

func TestAPartitionOfOneSessionFollowsItToNewConnections(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		id := c.SessionID()
		p := s.Partition(zkembed.Cut{Sessions: []int64{id}})
		time.Sleep(2 * T)
		require.NotContains(t, sessionIDs(s), id)
		require.Contains(t, sessionIDs(s), other.SessionID())
		create(t, other, "/a", 0)
		p.Heal()
	})
}

func sessionIDs(s *zkembed.Server) []int64 {
	var ids []int64
	for _, i := range s.Sessions() {
		ids = append(ids, i.ID)
	}
	return ids
}

func TestADialThatHangsIsRefusedWhenThePartitionTurnsToRefusing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		s.Partition(zkembed.Cut{})
		begun := time.Now()
		time.AfterFunc(time.Second, func() { s.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial}) })
		require.ErrorIs(t, coordtest.Err(s.Dial("tcp", s.Addr(), time.Minute)), syscall.ECONNREFUSED)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestNewConnectionsHangOrAreRefusedOrMeetSilence(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		p := s.Partition(zkembed.Cut{})
		begun := time.Now()
		require.ErrorIs(t, coordtest.Err(s.Dial("tcp", s.Addr(), 3*time.Second)), os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(begun))
		p.Heal()

		p = s.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		require.ErrorIs(t, coordtest.Err(s.Dial("tcp", s.Addr(), 3*time.Second)), syscall.ECONNREFUSED)
		p.Heal()

		p = s.Partition(zkembed.Cut{NewConns: zkembed.AcceptDial})
		nc, err := s.Dial("tcp", s.Addr(), 3*time.Second)
		require.NoError(t, err)
		require.NoError(t, coordtest.Err(nc.Write([]byte("ruok"))))
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Hour)))
		require.ErrorIs(t, coordtest.Err(nc.Read(make([]byte, 1))), os.ErrDeadlineExceeded)
		p.Heal()
		require.NoError(t, nc.SetReadDeadline(time.Time{}))
		answer := make([]byte, 4)
		require.NoError(t, coordtest.Err(nc.Read(answer)))
		require.Equal(t, "imok", string(answer))
		require.NoError(t, nc.Close())
	})
}

// follows is a client at a follower that keeps up, and the time by which the
// leader has heard of it.
func follows(t *testing.T, s *zkembed.Server) (c *zk.Conn, f *zkembed.Follower, id int64) {
	t.Helper()
	c = client(t, s)
	id = c.SessionID()
	f = s.AddFollower(0, id)
	time.Sleep(T)
	return c, f, id
}

func expiryOf(t *testing.T, s *zkembed.Server, id int64) time.Time {
	t.Helper()
	for _, i := range s.Sessions() {
		if i.ID == id {
			return i.Expires
		}
	}
	t.Fatal("the session has ended")
	return time.Time{}
}

// begin is a moment after a ping, with ticks of a second, at which the follower
// has nothing to report.
const begin = 250 * time.Millisecond

func TestTheLeaderHearsOfASessionWithTheAnswerToItsNextPing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, _, id := follows(t, s)
		time.Sleep(time.Second + begin)
		before := expiryOf(t, s, id)
		require.False(t, exists(t, c, "/a"))
		create(t, c, "/b", 0)
		require.Equal(t, before, expiryOf(t, s, id))
		time.Sleep(500*time.Millisecond - begin)
		synctest.Wait()
		require.True(t, expiryOf(t, s, id).After(before))
	})
}

func TestWhatASilenceHeldArrivesWhenItEnds(t *testing.T) {
	for name, way := range map[string]zkembed.Direction{"to the leader": zkembed.ToLeader, "to the follower": zkembed.ToFollower} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *zkembed.Server) {
				c, f, id := follows(t, s)
				begun, expires := time.Now(), expiryOf(t, s, id)
				f.Silence(way)
				time.AfterFunc(3*time.Second, func() { f.Silence(0) })
				require.False(t, exists(t, c, "/a"))
				time.AfterFunc(2*time.Second, func() {
					require.Equal(t, way == zkembed.ToFollower, len(paths(s)) == 1)
					require.Equal(t, expires, expiryOf(t, s, id), "the report is held, too")
				})
				create(t, c, "/a", 0)
				require.Equal(t, 3*time.Second, time.Since(begun))
				synctest.Wait()
				require.True(t, expiryOf(t, s, id).After(expires))
				require.Positive(t, f.Link().Held)
				require.Zero(t, f.Link().Lost)
			})
		})
	}
}

// A client's trust window must allow for this schedule: its requests, a write
// among them, were answered, and the leader never hears of the session.
func TestTheBacklogOfACutLinkAcknowledgesWhatWasNeverReported(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, f, id := follows(t, s)
		time.Sleep(begin)
		begun, expires := time.Now(), expiryOf(t, s, id)
		f.Silence(zkembed.ToFollower)
		time.AfterFunc(2*time.Second, func() { f.Cut(zkembed.ToLeader) })
		time.AfterFunc(3*time.Second, func() { f.Silence(0) })
		time.Sleep(time.Second)
		require.False(t, exists(t, c, "/b"))
		create(t, c, "/a", 0)
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Equal(t, expires, expiryOf(t, s, id))
		time.Sleep(T)
		require.NotEqual(t, zk.StateHasSession, c.State(), "the follower turns its clients away")
		require.NotContains(t, sessionIDs(s), id)
		counts := f.Link()
		require.Positive(t, counts.Lost)
		require.Equal(t, 1, counts.Unreported)
		f.Rejoin()
		awaitQuiet(c)
		require.True(t, exists(t, c, "/a"), "brought up to date")
	})
}

func TestWhatIsSentOverACutLinkIsLost(t *testing.T) {
	for name, way := range map[string]zkembed.Direction{
		"to the leader": zkembed.ToLeader, "to the follower": zkembed.ToFollower, "both": zkembed.Both,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *zkembed.Server) {
				c, f, id := follows(t, s)
				f.Isolate()
				done := make(chan error, 1)
				go func() {
					_, err := c.Create("/a", nil, 0, open)
					done <- err
				}()
				synctest.Wait()
				f.Cut(way)
				synctest.Wait()
				require.Equal(t, way == zkembed.ToLeader, len(done) == 0, "the follower learns of it")
				f.Rejoin()
				require.Error(t, <-done, "its acknowledgement is lost")
				awaitQuiet(c)
				require.Equal(t, way == zkembed.ToFollower, len(paths(s)) == 1)
				require.Equal(t, way == zkembed.ToFollower, exists(t, c, "/a"))
				require.Equal(t, id, c.SessionID())
			})
		})
	}
}

func TestAFollowerWhoseLinkIsCutStops(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, f, id := follows(t, s)
		f.Silence(zkembed.ToFollower)
		f.Cut(zkembed.ToLeader)
		f.Cut(zkembed.ToLeader)
		f.Stop()
		f.Rejoin()
		awaitQuiet(c)
		create(t, c, "/a", 0)
		require.Equal(t, id, c.SessionID())
	})
}

func TestADelayOfEitherDirectionMakesAWriteLate(t *testing.T) {
	for _, way := range []zkembed.Direction{zkembed.ToLeader, zkembed.ToFollower} {
		virtual(t, func(t *testing.T, s *zkembed.Server) {
			c, f, _ := follows(t, s)
			f.Delay(way, lag)
			begun := time.Now()
			create(t, c, "/a", 0)
			require.Equal(t, lag, time.Since(begun))
		})
	}
}

func TestALatePingMakesTheReportLate(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		const lateness = 400 * time.Millisecond
		s := start(t, zkembed.WithAddr(""), zkembed.WithTick(time.Second), zkembed.WithPingLateness(lateness))
		c, _, id := follows(t, s)
		latest := time.Duration(0)
		for range 200 {
			expires, begun := expiryOf(t, s, id), time.Now()
			require.False(t, exists(t, c, "/a"))
			for expiryOf(t, s, id).Equal(expires) && time.Since(begun) < T/2 {
				time.Sleep(10 * time.Millisecond)
				require.False(t, exists(t, c, "/a"))
			}
			latest = max(latest, time.Since(begun))
		}
		require.Greater(t, latest, 500*time.Millisecond)
		require.Less(t, latest, 2*time.Second)
	})
}
