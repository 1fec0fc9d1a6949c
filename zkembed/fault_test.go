package zkembed_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestADroppedRequestIsNeverApplied(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		f := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Drop())
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), zk.ErrConnectionClosed)
		require.Equal(t, 1, f.Fired())
		require.Empty(t, s.Nodes())
		awaitQuiet(c)
		create(t, c, "/b", 0)
		require.Equal(t, []string{"/b"}, paths(s))
	})
}

func TestALostReplyHidesThatTheRequestWasApplied(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		f := s.Inject(zkembed.Match{PathPrefix: "/a", Times: 1}, zkembed.LoseReply())
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, zk.FlagEphemeral, open)), zk.ErrConnectionClosed)
		<-f.Struck()
		awaitQuiet(c)
		require.Equal(t, id, ownerOf(t, c, "/a"))
		require.Equal(t, id, c.SessionID(), "the session must have survived")
	})
}

func TestADelayedRequestIsAppliedLate(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
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
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
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
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		zxid := s.Zxid()
		for code, err := range map[zkembed.Code]error{
			zkembed.CodeNoAuth: zk.ErrNoAuth, zkembed.CodeSessionMoved: zk.ErrSessionMoved,
		} {
			s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.ReplyError(code))
			require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), err)
		}
		require.Empty(t, s.Nodes())
		require.Equal(t, zxid, s.Zxid())
	})
}

func TestAHungRequestLastsUntilTheClientGivesTheConnectionUp(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		f := s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Hang())
		begun := time.Now()
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), zk.ErrConnectionClosed)
		require.GreaterOrEqual(t, time.Since(begun), T/3)
		require.Equal(t, 1, f.Fired())
		awaitQuiet(c)
		create(t, c, "/b", 0)
		require.Equal(t, []string{"/b"}, paths(s))
	})
}

func TestADelayedEventComesLateAndNothingOvertakesIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		f := s.Inject(zkembed.Match{PathPrefix: "/a"}, zkembed.DelayEvents(2*time.Second))
		_, _, events, err := c.ExistsW("/a")
		require.NoError(t, err)
		begun := time.Now()
		create(t, other, "/a", 0)
		require.Zero(t, time.Since(begun))
		require.True(t, exists(t, c, "/a"))
		require.Equal(t, zk.EventNodeCreated, (<-events).Type)
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Equal(t, 1, f.Fired())
	})
}

func TestAFaultStrikesOnlyWhatItMatches(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
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
		require.False(t, exists(t, c, "/gate"), "the first delete came after all")
	})
}

func TestALateRequestOfASessionThatIsOverIsNotCarriedOut(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		s.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}}, zkembed.CarryOutLate(time.Second))
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, zk.FlagEphemeral, open)), zk.ErrConnectionClosed)
		require.NoError(t, s.ExpireSession(id))
		time.Sleep(2 * time.Second)
		require.Empty(t, s.Nodes())
	})
}

func TestAfterAnyMixOfTroubleEveryClientWorksAgain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		clients := make([]*zk.Conn, 4)
		for i := range clients {
			c := client(t, s)
			clients[i] = c
			wg.Go(func() { work(ctx, c) })
		}
		r := rand.New(rand.NewPCG(seed, 0))
		for range 150 {
			trouble(r, s)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		s.Heal()
		s.Resume()
		time.Sleep(5 * T)
		cancel()
		wg.Wait()
		for _, c := range clients {
			awaitQuiet(c)
			create(t, c, "/done-", zk.FlagSequence)
		}
	})
}

// work does a bit of everything; some of its requests fail.
func work(ctx context.Context, c *zk.Conn) {
	for ctx.Err() == nil {
		p, err := c.Create("/n-", []byte("x"), zk.FlagEphemeral|zk.FlagSequence, open)
		if err == nil {
			_, _ = c.Set(p, nil, -1)
			_, _, _ = c.Children("/")
			_, _ = c.Sync("/")
			_ = c.Delete(p, -1)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// trouble causes one random fault, which ends by itself after a while.
func trouble(r *rand.Rand, s *zkembed.Server) {
	var id int64
	if sessions := s.Sessions(); len(sessions) > 0 {
		id = sessions[r.IntN(len(sessions))].ID
	}
	until := time.Duration(r.IntN(15)) * time.Second
	m := zkembed.Match{Skip: r.IntN(5), Times: 1 + r.IntN(3)}
	switch r.IntN(8) {
	case 0:
		_ = s.ExpireSession(id)
	case 1:
		_ = s.DropConn(id)
	case 2:
		_ = s.MoveSession(id)
	case 3:
		p := s.Partition(zkembed.Cut{
			Direction: zkembed.Direction(r.IntN(4)), NewConns: zkembed.NewConns(r.IntN(3)),
		})
		time.AfterFunc(until, p.Heal)
	case 4:
		p := s.Partition(zkembed.Cut{Sessions: []int64{id}})
		time.AfterFunc(until, p.Heal)
	case 5:
		f := s.AddFollower(time.Duration(r.IntN(2000))*time.Millisecond, id)
		if r.IntN(2) == 0 {
			time.AfterFunc(until/2, f.Isolate)
		}
		time.AfterFunc(until, f.Stop)
	case 6:
		acts := []zkembed.Action{
			zkembed.Drop(), zkembed.Hang(), zkembed.LoseReply(), zkembed.Delay(until),
			zkembed.DelayReply(until), zkembed.ReplyError(zkembed.CodeThrottledOp), zkembed.DelayEvents(until),
		}
		f := s.Inject(m, acts[r.IntN(len(acts))])
		time.AfterFunc(until, f.Remove)
	case 7:
		s.Restart(until / 5)
	}
}

func TestASessionLivesByItsPingsAndEndsInAPartition(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
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
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		other := s.Partition(zkembed.Cut{Sessions: []int64{id + 1}})
		s.Partition(zkembed.Cut{})
		time.Sleep(T / 3)
		s.Heal()
		require.False(t, other.Struck(), "it cuts no client off")
		require.Equal(t, id, ownerOf(t, c, "/e"))
	})
}

func TestWithTheWayBackCutWritesAreAppliedUnheard(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToClient})
		require.ErrorIs(t, coordtest.Err(c.Create("/a", nil, 0, open)), zk.ErrConnectionClosed)
		require.Equal(t, []string{"/a"}, paths(s))
		p.Heal()
	})
}

func TestWithTheWayThereCutWritesArriveAfterTheHealing(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
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
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		p := s.Partition(zkembed.Cut{Sessions: []int64{c.SessionID()}})
		require.ErrorIs(t, coordtest.Err(c.Create("/late", nil, 0, open)), zk.ErrConnectionClosed)
		require.Empty(t, s.Nodes())
		p.Heal()
		synctest.Wait()
		require.Equal(t, []string{"/late"}, paths(s))
	})
}

func TestAPartitionOfOneSessionFollowsItToNewConnections(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		s.Partition(zkembed.Cut{})
		begun := time.Now()
		time.AfterFunc(time.Second, func() { s.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial}) })
		require.ErrorIs(t, coordtest.Err(s.Dial("tcp", s.Addr(), time.Minute)), syscall.ECONNREFUSED)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestNewConnectionsHangOrAreRefusedOrMeetSilence(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
	for name, way := range map[string]zkembed.Direction{
		"to the leader": zkembed.ToLeader, "to the follower": zkembed.ToFollower,
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
			inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
				c, f, id := follows(t, s)
				f.Isolate()
				done := coordtest.Go(func() error { return coordtest.Err(c.Create("/a", nil, 0, open)) })
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
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
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
		inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
			c, f, _ := follows(t, s)
			f.Delay(way, lag)
			begun := time.Now()
			create(t, c, "/a", 0)
			require.Equal(t, lag, time.Since(begun))
		})
	}
}

func TestALatePingMakesTheReportLate(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
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
