package election_test

import (
	"errors"
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
	"github.com/zkcoord/zkcoord/zkembed"
)

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
				asked := make(chan error, 1)
				go func() { asked <- inspect.Revoke(b.Context(), admin, term.Node()) }()
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
		terms := make(chan *election.Term, 1)
		go func() {
			term, err := b.at(c).Campaign(b.Context(), nil)
			require.NoError(t, err)
			terms <- term
		}()
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
