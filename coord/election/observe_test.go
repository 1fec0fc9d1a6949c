package election_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

// observer is an observation in the background, one line per pair.
type observer struct {
	t     testing.TB
	lines chan string
	stop  context.CancelFunc
}

func observe(t testing.TB, e *election.Election) *observer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &observer{t: t, lines: make(chan string, 1000), stop: cancel}
	go func() {
		defer close(o.lines)
		for leader, err := range e.Observe(ctx) {
			switch {
			case err != nil:
				o.lines <- "error"
			case leader.None():
				o.lines <- "none"
			default:
				o.lines <- fmt.Sprintf("%s %d %v", leader.Data, leader.Token, leader.Revoked)
			}
		}
	}()
	return o
}

func (o *observer) sees(want string) {
	o.t.Helper()
	require.Equal(o.t, want, zktest.Receive(o.t, coordtest.Soon, o.lines, "news: %s", want))
}

func (o *observer) ends() {
	o.t.Helper()
	o.stop()
	o.sees("error")
	_, more := <-o.lines
	require.False(o.t, more, "the error is the last")
}

func seen(data string, term *election.Term, revoked bool) string {
	return fmt.Sprintf("%s %d %v", data, term.Token(), revoked)
}

func TestAnObserverSeesEachLeaderItsNewsAndThatThereIsNone(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		e := s.at(c)
		o := observe(s, s.candidate())
		o.sees("none")
		a := elected(s, e, "a")
		o.sees(seen("a", a, false))
		require.NoError(s, a.Proclaim(coordtest.Limited(s), []byte("a2")))
		o.sees(seen("a2", a, false))
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, a.Node()))
		o.sees(seen("a2", a, true))
		waiting := s.stand(s.Context(), e, "b", 2)
		require.NoError(s, a.Resign(coordtest.Limited(s)))
		b := coordtest.Had(s, waiting)
		o.sees(seen("b", b, false))
		require.NoError(s, b.Resign(coordtest.Limited(s)))
		o.sees("none")
		require.NoError(s, s.w.Admin().Delete(s.path, -1)) // as the server does with an empty container
		again := elected(s, e, "c")
		o.sees(seen("c", again, false))
		require.NoError(s, again.Resign(coordtest.Limited(s)))
		o.sees("none")
		o.ends()
	})
}

func TestAnObserverSeesTheLatestOnly(t *testing.T) {
	each(t, func(s scene) {
		e := s.candidate()
		term := elected(s, e, "0")
		next, stop := iter.Pull2(e.Observe(coordtest.Limited(s)))
		defer stop()
		leader, err, ok := next()
		require.True(s, ok)
		require.NoError(s, err)
		require.Equal(s, "0", string(leader.Data))
		for i := range 9 {
			require.NoError(s, term.Proclaim(coordtest.Limited(s), fmt.Append(nil, i+1)))
		}
		leader, err, ok = next()
		require.True(s, ok)
		require.NoError(s, err)
		require.Equal(s, "9", string(leader.Data))
		require.NoError(s, term.Resign(coordtest.Limited(s)))
	})
}

func TestAnObserverThatStopsIsGone(t *testing.T) {
	s := onEmbedded(t)
	e := s.candidate()
	term := elected(s, e, "leader")
	for range e.Observe(coordtest.Limited(s)) {
		break
	}
	require.NoError(s, term.Resign(coordtest.Limited(s)))
}

func TestAnObserverGoesOnInANewSessionUntilItsClientIsClosed(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		e := s.candidate()
		watching := coordtest.Open(s, p.Addr())
		o := observe(s, s.at(watching))
		o.sees("none")
		a := elected(s, e, "a")
		o.sees(seen("a", a, false))
		p.Refuse()
		s.w.ExpireSession(watching.Info().SessionID)
		require.NoError(s, a.Resign(coordtest.Limited(s)))
		b := elected(s, e, "b")
		p.Heal()
		o.sees(seen("b", b, false))
		require.NoError(s, b.Resign(coordtest.Limited(s)))
		o.sees("none")
		require.NoError(s, watching.Close(context.Background()))
		o.sees("error")
	})
}

func TestALeaderOfThePastIsNotReportedByAServerThatLags(t *testing.T) {
	s := onEmbedded(t)
	srv, e := s.w.Embedded(), s.candidate()
	old := elected(t, e, "old")
	waiting := s.stand(t.Context(), e, "new", 2)
	late := coordtest.Open(t, s.w.ConnectString())
	follower := srv.AddFollower(time.Minute, late.Info().SessionID)
	require.NoError(t, old.Resign(coordtest.Limited(t)))
	next := coordtest.Had(t, waiting)
	stale, err := late.Children(coordtest.Limited(t), s.path)
	require.NoError(t, err)
	require.Len(t, stale, 3, "the follower does not lag: two candidates and a notice")
	before := srv.SessionCounts(late.Info().SessionID).Total()
	answer := coordtest.Begin(coordtest.Limited(t), s.at(late).Leader)
	zktest.Eventually(t, coordtest.Soon,
		func() bool { return srv.SessionCounts(late.Info().SessionID).Total() > before }, "a request")
	follower.Stop() // it has caught up
	require.Equal(t, next.Token(), coordtest.Had(t, answer).Token)
	require.NoError(t, next.Resign(coordtest.Limited(t)))
}

func TestAFirstThatGoesWhileItIsReadIsNotReported(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		e := s.candidate()
		old := elected(s, e, "old")
		waiting := s.stand(s.Context(), e, "new", 2)
		goOn := make(chan struct{})
		held := p.Inject(proxy.Fault{On: []int32{proxy.OpGetData}, Path: s.path, Do: proxy.Hold(goOn)})
		answer := coordtest.Begin(coordtest.Limited(s), s.behind().Leader)
		zktest.Receive(s, coordtest.Soon, held.First(), "the line was listed")
		require.NoError(s, old.Resign(coordtest.Limited(s)))
		next := coordtest.Had(s, waiting)
		close(goOn)
		require.Equal(s, "new", string(coordtest.Had(s, answer).Data))
		require.NoError(s, next.Resign(coordtest.Limited(s)))
	})
}

func TestALeaderWhoseDataMayNotBeReadIsStillALeader(t *testing.T) {
	each(t, func(s scene) {
		hidden := coord.WithACL("digest:u:p:cdrwa")
		secret := coordtest.Open(s, s.w.ConnectString(), coord.WithAuth("digest", "u:p"), hidden)
		c := coordtest.Open(s, s.w.ConnectString())
		require.NoError(s, c.EnsureDir(coordtest.Limited(s), s.path))
		term := elected(s, s.at(secret), "secret")
		leader := coordtest.Call(s, s.at(c).Leader)
		require.Equal(s, term.Token(), leader.Token)
		require.Empty(s, leader.Data)
		require.NoError(s, term.Resign(coordtest.Limited(s)))
	})
}

func TestAClientThatMayNotReadGetsAnError(t *testing.T) {
	each(t, func(s scene) {
		secret := coordtest.Open(s, s.w.ConnectString(), coord.WithAuth("digest", "u:p"),
			coord.WithACL("auth::cdrwa"))
		require.NoError(s, secret.EnsureDir(coordtest.Limited(s), s.path))
		e := s.candidate()
		_, err := e.Leader(coordtest.Limited(s))
		require.ErrorIs(s, err, coord.ErrNoAuth)
		n := 0
		for _, err := range e.Observe(coordtest.Limited(s)) {
			require.ErrorIs(s, err, coord.ErrNoAuth)
			n++
		}
		require.Equal(s, 1, n)
	})
}

func TestWhatAnElectionCosts(t *testing.T) {
	s := onEmbedded(t)
	s.w.SetTimeout(time.Minute)
	minute := coord.WithSessionTimeout(time.Minute) // no probe, no ping meanwhile
	spent := func(c *coord.Client, f func()) zkembed.Counts { return coordtest.Spent(s.w.Embedded(), c, f) }
	mine, others := coordtest.Open(t, s.w.ConnectString(), minute), coordtest.Open(t, s.w.ConnectString(), minute)
	e := s.at(mine)
	var term *election.Term
	require.NoError(t, elected(t, e, "makes the directory").Resign(coordtest.Limited(t)))
	campaign := spent(mine, func() { term = elected(t, e, "leader") })
	require.Equal(t, 1, campaign[zkembed.OpCreate])
	require.Equal(t, 1, campaign[zkembed.OpGetChildren2])
	require.Equal(t, 1, campaign[zkembed.OpMulti], "the notice")
	require.LessOrEqual(t, campaign.Total(), 5, "%v", campaign) // a slow machine's hold reads its nodes
	require.Equal(t,
		zkembed.Counts{
			zkembed.OpMulti: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1, zkembed.OpExists: 1,
		}, spent(others, func() {
			require.NoError(t, coordtest.Err(s.at(others).Leader(coordtest.Limited(t))))
		}))
	proclaimed := spent(mine, func() { require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("x"))) })
	require.Equal(t, 1, proclaimed[zkembed.OpMulti])
	o := observe(t, s.at(others))
	o.sees(seen("x", term, false))
	change := spent(others, func() {
		require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("y")))
		o.sees(seen("y", term, false))
	})
	require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1}, change)
	quiet := spent(others, func() {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := s.stand(ctx, e, "next", 2)
		cancel()
		require.Error(t, zktest.Receive(t, coordtest.Soon, waiting, "the end of the campaign").Err)
		s.lined(1)
	})
	require.Empty(t, quiet, "an observer is not woken by candidates")
	o.ends()
	resigned := spent(mine, func() { require.NoError(t, term.Resign(coordtest.Limited(t))) })
	require.Equal(t, 1, resigned[zkembed.OpMulti])
	require.Zero(t, resigned[zkembed.OpDelete], "node and notice are deleted at once")
}

// A LeaderLatch of Curator's that watches a node which is written into is not
// woken any more: internal/interop shows it with Curator's own.
func TestNothingIsWrittenIntoACandidatesNode(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		e := s.candidate()
		term := elected(s, e, "leader")
		waiting := s.stand(s.Context(), e, "next", 2)
		require.NoError(s, term.Proclaim(coordtest.Limited(s), []byte("news")))
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, term.Node()))
		zktest.Receive(s, coordtest.Soon, term.Revoked(), "the request")
		names := coordtest.Children(s, s.w, s.path)
		for _, name := range names {
			node := path.Join(s.path, name)
			if node == inspect.Notice(term.Node()) {
				continue
			}
			if node != term.Node() {
				require.ErrorIs(s, inspect.Revoke(coordtest.Limited(s), c, node), errors.ErrUnsupported)
				require.ErrorIs(s, coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(s), c, node, 0)), errors.ErrUnsupported)
			}
			_, stat, err := s.w.Admin().Get(node)
			require.NoError(s, err)
			require.Zero(s, stat.Version, name)
		}
		require.NoError(s, term.Resign(coordtest.Limited(s)))
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, term.Node()), "it is gone")
		require.NoError(s, coordtest.Had(s, waiting).Resign(coordtest.Limited(s)))
		require.Empty(s, coordtest.Children(s, s.w, s.path))
	})
}

// owned counts the nodes of a session.
func owned(b coordtest.Bubble, session int64) int {
	return len(slices.DeleteFunc(b.Server.Nodes(), func(n zkembed.Node) bool { return n.Stat.EphemeralOwner != session }))
}

func TestInKazoosDialectACandidateThatWaitsIsAsked(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString(), coord.WithDialect(coord.Kazoo))
		e := s.at(c)
		term := elected(s, e, "leader")
		waiting := s.stand(s.Context(), e, "next", 2)
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, coordtest.Call(s, e.Contenders)[1].Node))
		require.NoError(s, term.Resign(coordtest.Limited(s)))
		next := coordtest.Had(s, waiting)
		zktest.Receive(s, coordtest.Soon, next.Revoked(), "the request")
		require.NoError(s, next.Resign(coordtest.Limited(s)))
	})
}

func TestCandidatesShowWhatTheLeaderProclaimsAndThatItWasAsked(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		e := at(b, c, electionPath)
		term := elected(b, e, "old")
		shown := func(all []inspect.Contender, err error) inspect.Contender {
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, term.Token(), all[0].Token)
			require.Equal(t, term.Node(), all[0].Node)
			return all[0]
		}
		require.NoError(t, term.Proclaim(b.Context(), []byte("new")))
		require.Equal(t, "new", shown(e.Contenders(b.Context())).Owner)
		require.NoError(t, inspect.Revoke(b.Context(), c, term.Node()))
		require.True(t, shown(e.Contenders(b.Context())).Revoked)
		asked := shown(inspect.Contenders(b.Context(), c, electionPath))
		require.True(t, asked.Revoked)
		require.Equal(t, "new", asked.Owner)
		require.NoError(t, term.Resign(b.Context()))
	})
}

func TestAProclamationThatComesTooLateIsCalledThat(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		term := elected(b, at(b, b.Open(), electionPath), "leader")
		require.NoError(t, term.Resign(b.Context()))
		err := term.Proclaim(b.Context(), []byte("news"))
		require.ErrorIs(t, err, coord.ErrReleased)
		require.EqualError(t, err, "proclaim "+term.Node()+": hold released")
	})
}

// A request is written over what was read, and in the place of what is too much
// to stand behind it.
func TestARequestKeepsWhatTheLeaderProclaimedLast(t *testing.T) {
	coordtest.Cases(t, map[string]string{
		"an address": "10.0.0.7:80", "too much": strings.Repeat("x", 1<<19+1),
	}, func(t *testing.T, last string) {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			c, admin := b.Open(), b.Open()
			e := at(b, c, electionPath)
			term := elected(b, e, "old")
			late := b.Server.Inject(zkembed.Match{
				Session: admin.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: inspect.Notice(term.Node()),
				Times: 1,
			}, zkembed.Delay(time.Second))
			asked := coordtest.Go(func() error { return inspect.Revoke(b.Context(), admin, term.Node()) })
			time.Sleep(T / 1000)
			require.NoError(t, term.Proclaim(b.Context(), []byte(last)))
			require.NoError(t, <-asked)
			require.Equal(t, 1, late.Fired())
			<-term.Revoked()
			leader := coordtest.Call(b, e.Leader)
			require.True(t, leader.Revoked)
			if len(last) > 1<<19 {
				last = ""
			}
			require.Equal(t, last, string(leader.Data))
			require.NoError(t, term.Resign(b.Context()))
		})
	})
}

// notices are requests that make a leader's notice.
var notices = zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(r zkembed.Request) bool {
	return slices.ContainsFunc(r.Paths, func(p string) bool { return strings.HasSuffix(p, "-latch-") })
}, Times: 1}

func TestALeaderThatLosesItsNodeBeforeItHasANoticeStandsAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, admin := b.Open(), b.Open()
		late := b.Server.Inject(notices, zkembed.Delay(T/10))
		campaign := coordtest.Begin(b.Context(),
			func(ctx context.Context) (*election.Term, error) { return at(b, c, electionPath).Campaign(ctx, nil) })
		time.Sleep(T / 20)
		first := coordtest.Call(b, at(b, admin, electionPath).Leader)
		require.NoError(t, inspect.Break(b.Context(), admin, first.Node))
		term := coordtest.Had(b, campaign)
		require.Equal(t, 1, late.Fired())
		require.Greater(t, term.Token(), first.Token)
		require.NoError(t, term.Err())
		require.Equal(t, 2, owned(b, c.Info().SessionID))
		require.NoError(t, term.Resign(b.Context()))
		require.Zero(t, owned(b, c.Info().SessionID))
	})
}

func TestANoticeWhoseReplyIsLostIsFoundAgainAndGoesWithTheTerm(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, admin := b.Open(), b.Open()
		lost := b.Server.Inject(notices, zkembed.LoseReply())
		term := elected(b, at(b, c, electionPath), "leader")
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 2, owned(b, c.Info().SessionID))
		require.NoError(t, admin.Delete(b.Context(), term.Node(), -1))
		<-term.Done()
		time.Sleep(T)
		require.Zero(t, owned(b, c.Info().SessionID))
	})
}

func TestACampaignThatEndsBeforeItHasANoticeLeavesNothing(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		b.Server.Inject(notices, zkembed.Delay(T/10))
		ctx := b.Within(T / 20)
		require.ErrorIs(t, coordtest.Err(at(b, c, electionPath).Campaign(ctx, nil)), ctx.Err())
		time.Sleep(T)
		require.Zero(t, owned(b, c.Info().SessionID))
	})
}

func TestANoticeThatWasDeletedIsMadeAnew(t *testing.T) {
	s := onEmbedded(t)
	c := coordtest.Open(s, s.w.ConnectString())
	term := elected(s, s.candidate(), "leader")
	for range 2 {
		require.NoError(s, c.Delete(coordtest.Limited(s), inspect.Notice(term.Node()), -1))
		for _, news := range []string{"news", "more"} {
			require.NoError(s, term.Proclaim(coordtest.Limited(s), []byte(news)))
			data, _, err := s.w.Admin().Get(inspect.Notice(term.Node()))
			require.NoError(s, err)
			require.Equal(s, news, string(data))
		}
	}
	require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, term.Node()))
	zktest.Receive(s, coordtest.Soon, term.Revoked(), "the request")
	require.NoError(s, term.Resign(coordtest.Limited(s)))
	s.lined(0)
}
