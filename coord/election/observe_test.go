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
	t     *testing.T
	lines chan string
	stop  context.CancelFunc
}

func observe(t *testing.T, e *election.Election) *observer {
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
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, c := w.Path("election"), coordtest.Open(t, w.ConnectString())
		e := at(t, c, path)
		o := observe(t, at(t, coordtest.Open(t, w.ConnectString()), path))
		o.sees("none")
		a := elected(t, e, "a")
		o.sees(seen("a", a, false))
		require.NoError(t, a.Proclaim(coordtest.Limited(t), []byte("a2")))
		o.sees(seen("a2", a, false))
		require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, a.Node()))
		o.sees(seen("a2", a, true))
		waiting := stand(t, w, t.Context(), e, path, "b", 2)
		require.NoError(t, a.Resign(coordtest.Limited(t)))
		b := won(t, waiting)
		o.sees(seen("b", b, false))
		require.NoError(t, b.Resign(coordtest.Limited(t)))
		o.sees("none")
		require.NoError(t, w.Admin().Delete(path, -1)) // as the server does with an empty container
		again := elected(t, e, "c")
		o.sees(seen("c", again, false))
		require.NoError(t, again.Resign(coordtest.Limited(t)))
		o.sees("none")
		o.ends()
	})
}

func TestAnObserverSeesTheLatestOnly(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		term := elected(t, e, "0")
		next, stop := iter.Pull2(e.Observe(coordtest.Limited(t)))
		defer stop()
		leader, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, "0", string(leader.Data))
		for i := range 9 {
			require.NoError(t, term.Proclaim(coordtest.Limited(t), fmt.Append(nil, i+1)))
		}
		leader, err, ok = next()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, "9", string(leader.Data))
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestAnObserverThatStopsIsGone(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	e := at(t, coordtest.Open(t, w.ConnectString()), w.Path("election"))
	term := elected(t, e, "leader")
	for range e.Observe(coordtest.Limited(t)) {
		break
	}
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}

func TestAnObserverGoesOnInANewSession(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, p := w.Path("election"), w.Proxy()
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		watching := coordtest.Open(t, p.Addr())
		o := observe(t, at(t, watching, path))
		o.sees("none")
		a := elected(t, e, "a")
		o.sees(seen("a", a, false))
		p.Refuse()
		w.ExpireSession(watching.SessionID())
		require.NoError(t, a.Resign(coordtest.Limited(t)))
		b := elected(t, e, "b")
		p.Heal()
		o.sees(seen("b", b, false))
		require.NoError(t, b.Resign(coordtest.Limited(t)))
		o.sees("none")
		o.ends()
	})
}

func TestAnObserverEndsWhenItsClientIsClosed(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	o := observe(t, at(t, c, w.Path("election")))
	o.sees("none")
	require.NoError(t, c.Close(context.Background()))
	o.ends()
}

func TestALeaderOfThePastIsNotReportedByAServerThatLags(t *testing.T) {
	w := zktest.NewEmbedded(t)
	path, srv := w.Path("election"), w.Embedded()
	e := at(t, coordtest.Open(t, w.ConnectString()), path)
	old := elected(t, e, "old")
	waiting := stand(t, w, t.Context(), e, path, "new", 2)
	late := coordtest.Open(t, w.ConnectString())
	follower := srv.AddFollower(time.Minute, late.SessionID())
	require.NoError(t, old.Resign(coordtest.Limited(t)))
	next := won(t, waiting)
	stale, err := late.Children(coordtest.Limited(t), path)
	require.NoError(t, err)
	require.Len(t, stale, 3, "the follower does not lag: two candidates and a notice")
	before := srv.SessionCounts(late.SessionID()).Total()
	asking, ctx, answer := at(t, late, path), coordtest.Limited(t), make(chan int64, 1)
	go func() {
		leader, err := asking.Leader(ctx)
		if err != nil {
			t.Error(err)
		}
		answer <- leader.Token
	}()
	zktest.Eventually(t, coordtest.Soon, func() bool { return srv.SessionCounts(late.SessionID()).Total() > before }, "a request")
	follower.Stop() // it has caught up
	require.Equal(t, next.Token(), zktest.Receive(t, coordtest.Soon, answer, "the leader"))
	require.NoError(t, next.Resign(coordtest.Limited(t)))
}

func TestAFirstThatGoesWhileItIsReadIsNotReported(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, p := w.Path("election"), w.Proxy()
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		old := elected(t, e, "old")
		waiting := stand(t, w, t.Context(), e, path, "new", 2)
		goOn := make(chan struct{})
		held := p.Inject(proxy.Fault{On: []int32{proxy.OpGetData}, Path: path, Do: proxy.Hold(goOn)})
		asking := at(t, coordtest.Open(t, p.Addr()), path)
		answer := coordtest.Go(func() string {
			leader, err := asking.Leader(coordtest.Limited(t))
			return fmt.Sprint(string(leader.Data), err)
		})
		zktest.Receive(t, coordtest.Soon, held.First(), "the line was listed")
		require.NoError(t, old.Resign(coordtest.Limited(t)))
		next := won(t, waiting)
		close(goOn)
		require.Equal(t, "new<nil>", zktest.Receive(t, coordtest.Soon, answer, "the leader"))
		require.NoError(t, next.Resign(coordtest.Limited(t)))
	})
}

func TestALeaderWhoseDataMayNotBeReadIsStillALeader(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		hidden := coord.WithACL("digest:u:p:cdrwa")
		secret := coordtest.Open(t, w.ConnectString(), coord.WithAuth("digest", "u:p"), hidden)
		c := coordtest.Open(t, w.ConnectString())
		require.NoError(t, c.EnsureDir(coordtest.Limited(t), path))
		term := elected(t, at(t, secret, path), "secret")
		leader := leaderOf(t, at(t, c, path))
		require.Equal(t, term.Token(), leader.Token)
		require.Empty(t, leader.Data)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestAClientThatMayNotReadGetsAnError(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		secret := coordtest.Open(t, w.ConnectString(), coord.WithAuth("digest", "u:p"),
			coord.WithACL("auth::cdrwa"))
		require.NoError(t, secret.EnsureDir(coordtest.Limited(t), path))
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		_, err := e.Leader(coordtest.Limited(t))
		require.ErrorIs(t, err, coord.ErrNoAuth)
		n := 0
		for _, err := range e.Observe(coordtest.Limited(t)) {
			require.ErrorIs(t, err, coord.ErrNoAuth)
			n++
		}
		require.Equal(t, 1, n)
	})
}

func TestWhatAnElectionCosts(t *testing.T) {
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	w.SetTimeout(time.Minute)
	minute := coord.WithSessionTimeout(time.Minute) // no probe, no ping meanwhile
	path := w.Path("election")
	spent := func(c *coord.Client, f func()) zkembed.Counts {
		before := w.Embedded().SessionCounts(c.SessionID())
		f()
		return w.Embedded().SessionCounts(c.SessionID()).Since(before)
	}
	mine, others := coordtest.Open(t, w.ConnectString(), minute), coordtest.Open(t, w.ConnectString(), minute)
	e := at(t, mine, path)
	var term *election.Term
	require.NoError(t, elected(t, e, "makes the directory").Resign(coordtest.Limited(t)))
	campaign := spent(mine, func() { term = elected(t, e, "leader") })
	require.Equal(t, 1, campaign[zkembed.OpCreate])
	require.Equal(t, 1, campaign[zkembed.OpGetChildren2])
	require.Equal(t, 1, campaign[zkembed.OpMulti], "the notice")
	require.LessOrEqual(t, campaign.Total(), 5, "%v", campaign) // a slow machine's hold reads its nodes
	require.Equal(t, zkembed.Counts{zkembed.OpMulti: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1, zkembed.OpExists: 1}, spent(others, func() {
		require.NoError(t, coordtest.Err(at(t, others, path).Leader(coordtest.Limited(t))))
	}))
	proclaimed := spent(mine, func() { require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("x"))) })
	require.Equal(t, 1, proclaimed[zkembed.OpMulti])
	o := observe(t, at(t, others, path))
	o.sees(seen("x", term, false))
	change := spent(others, func() {
		require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("y")))
		o.sees(seen("y", term, false))
	})
	require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1}, change)
	quiet := spent(others, func() {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := stand(t, w, ctx, e, path, "next", 2)
		cancel()
		require.Error(t, zktest.Receive(t, coordtest.Soon, waiting, "the end of the campaign").err)
		lined(t, w, path, 1)
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
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c, dir := coordtest.Open(t, w.ConnectString()), w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), dir)
		term := elected(t, e, "leader")
		waiting := stand(t, w, t.Context(), e, dir, "next", 2)
		require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("news")))
		require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, term.Node()))
		zktest.Receive(t, coordtest.Soon, term.Revoked(), "the request")
		names, _, err := w.Admin().Children(dir)
		require.NoError(t, err)
		for _, name := range names {
			node := path.Join(dir, name)
			if node == inspect.Notice(term.Node()) {
				continue
			}
			if node != term.Node() {
				require.ErrorIs(t, inspect.Revoke(coordtest.Limited(t), c, node), errors.ErrUnsupported)
				require.ErrorIs(t, coordtest.Err(inspect.RevokeAndWait(coordtest.Limited(t), c, node, 0)), errors.ErrUnsupported)
			}
			_, stat, err := w.Admin().Get(node)
			require.NoError(t, err)
			require.Zero(t, stat.Version, name)
		}
		require.NoError(t, term.Resign(coordtest.Limited(t)))
		require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, term.Node()), "it is gone")
		require.NoError(t, won(t, waiting).Resign(coordtest.Limited(t)))
		requireEmpty(t, w, dir)
	})
}

// owned counts the nodes of a session.
func (b bubble) owned(session int64) (n int) {
	for _, node := range b.Server.Nodes() {
		if node.Stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

func requireEmpty(t *testing.T, w *zktest.World, dir string) {
	t.Helper()
	names, _, err := w.Admin().Children(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestInKazoosDialectACandidateThatWaitsIsAsked(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		dir := w.Path("election")
		c := coordtest.Open(t, w.ConnectString(), coord.WithDialect(coord.Kazoo))
		e := at(t, c, dir)
		term := elected(t, e, "leader")
		waiting := stand(t, w, t.Context(), e, dir, "next", 2)
		all, err := e.Candidates(coordtest.Limited(t))
		require.NoError(t, err)
		require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, all[1].Node))
		require.NoError(t, term.Resign(coordtest.Limited(t)))
		next := won(t, waiting)
		zktest.Receive(t, coordtest.Soon, next.Revoked(), "the request")
		require.NoError(t, next.Resign(coordtest.Limited(t)))
	})
}

func TestCandidatesShowWhatTheLeaderProclaimsAndThatItWasAsked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		e := b.at(c)
		term, err := e.Campaign(b.Context(), []byte("old"))
		require.NoError(t, err)
		shown := func(all []inspect.Contender, err error) inspect.Contender {
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, term.Token(), all[0].Token)
			require.Equal(t, term.Node(), all[0].Node)
			return all[0]
		}
		require.NoError(t, term.Proclaim(b.Context(), []byte("new")))
		require.Equal(t, "new", shown(e.Candidates(b.Context())).Owner)
		require.NoError(t, inspect.Revoke(b.Context(), c, term.Node()))
		require.True(t, shown(e.Candidates(b.Context())).Revoked)
		asked := shown(inspect.Contenders(b.Context(), c, electionPath))
		require.True(t, asked.Revoked)
		require.Equal(t, "new", asked.Owner)
		require.NoError(t, term.Resign(b.Context()))
	})
}

func TestAProclamationThatComesTooLateIsCalledThat(t *testing.T) {
	inBubble(t, func(b bubble) {
		term, err := b.at(b.Open()).Campaign(b.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, term.Resign(b.Context()))
		err = term.Proclaim(b.Context(), []byte("news"))
		require.ErrorIs(t, err, coord.ErrReleased)
		require.EqualError(t, err, "proclaim "+term.Node()+": hold released")
	})
}

// A request is written over what was read, and in the place of what is too much
// to stand behind it.
func TestARequestKeepsWhatTheLeaderProclaimedLast(t *testing.T) {
	for name, last := range map[string]string{"an address": "10.0.0.7:80", "too much": strings.Repeat("x", 1<<16+1)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(), b.Open()
				e := b.at(c)
				term, err := e.Campaign(b.Context(), []byte("old"))
				require.NoError(t, err)
				late := b.Server.Inject(zkembed.Match{
					Session: admin.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: inspect.Notice(term.Node()), Times: 1,
				}, zkembed.Delay(time.Second))
				asked := coordtest.Go(func() error { return inspect.Revoke(b.Context(), admin, term.Node()) })
				time.Sleep(T / 1000)
				require.NoError(t, term.Proclaim(b.Context(), []byte(last)))
				require.NoError(t, <-asked)
				require.Equal(t, 1, late.Fired())
				<-term.Revoked()
				leader := leaderOf(b, e)
				require.True(t, leader.Revoked)
				if len(last) > 1<<16 {
					last = ""
				}
				require.Equal(t, last, string(leader.Data))
				require.NoError(t, term.Resign(b.Context()))
			})
		})
	}
}

// notices are requests that make a leader's notice.
func (b bubble) notices() zkembed.Match {
	return zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(r zkembed.Request) bool {
		return slices.ContainsFunc(r.Paths, func(p string) bool { return strings.HasSuffix(p, "-latch-") })
	}, Times: 1}
}

func TestALeaderThatLosesItsNodeBeforeItHasANoticeStandsAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		late := b.Server.Inject(b.notices(), zkembed.Delay(T/10))
		terms := coordtest.Go(func() *election.Term {
			term, err := b.at(c).Campaign(b.Context(), nil)
			require.NoError(t, err)
			return term
		})
		time.Sleep(T / 20)
		first := leaderOf(b, b.at(admin))
		require.NoError(t, inspect.Break(b.Context(), admin, first.Node))
		term := <-terms
		require.Equal(t, 1, late.Fired())
		require.Greater(t, term.Token(), first.Token)
		require.NoError(t, term.Err())
		require.Equal(t, 2, b.owned(c.SessionID()))
		require.NoError(t, term.Resign(b.Context()))
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestANoticeWhoseReplyIsLostIsFoundAgainAndGoesWithTheTerm(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		lost := b.Server.Inject(b.notices(), zkembed.LoseReply())
		term, err := b.at(c).Campaign(b.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 2, b.owned(c.SessionID()))
		require.NoError(t, admin.Delete(b.Context(), term.Node(), -1))
		<-term.Done()
		time.Sleep(T)
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestACampaignThatEndsBeforeItHasANoticeLeavesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		b.Server.Inject(b.notices(), zkembed.Delay(T/10))
		ctx := b.Within(T / 20)
		require.ErrorIs(t, coordtest.Err(b.at(c).Campaign(ctx, nil)), ctx.Err())
		time.Sleep(T)
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestANoticeThatWasDeletedIsMadeAnew(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c, dir := coordtest.Open(t, w.ConnectString()), w.Path("election")
	e := at(t, coordtest.Open(t, w.ConnectString()), dir)
	term := elected(t, e, "leader")
	for range 2 {
		require.NoError(t, c.Delete(coordtest.Limited(t), inspect.Notice(term.Node()), -1))
		for _, news := range []string{"news", "more"} {
			require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte(news)))
			data, _, err := w.Admin().Get(inspect.Notice(term.Node()))
			require.NoError(t, err)
			require.Equal(t, news, string(data))
		}
	}
	require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, term.Node()))
	zktest.Receive(t, coordtest.Soon, term.Revoked(), "the request")
	require.NoError(t, term.Resign(coordtest.Limited(t)))
	lined(t, w, dir, 0)
}
