package election_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestACandidateWhoseSessionDiedWhileItWaitedIsNotElected(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, p := w.Path("election"), w.Proxy()
		leader := elected(t, at(t, coordtest.Open(t, w.ConnectString()), path), "leader")
		doomed := coordtest.Open(t, p.Addr())
		second := stand(t, w, t.Context(), at(t, doomed, path), path, "second", 2)
		third := stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, "third", 3)
		p.Refuse() // it will not hear of its end for a while
		old := doomed.SessionID()
		w.ExpireSession(old)
		require.NoError(t, leader.Resign(coordtest.Limited(t)))
		next := won(t, third)
		require.Empty(t, second, "a dead candidate was elected")
		p.Heal()
		lined(t, w, path, 2)
		require.Empty(t, second, "elected by the place of the dead session")
		require.NoError(t, next.Resign(coordtest.Limited(t)))
		again := won(t, second)
		require.NotEqual(t, old, again.Session())
		require.Greater(t, again.Token(), next.Token())
		require.NoError(t, again.Resign(coordtest.Limited(t)))
	})
}

func TestACandidateWhoseNodeIsDeletedStandsAgain(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		leader := elected(t, e, "leader")
		second := stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, "second", 2)
		third := stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, "third", 3)
		line, err := e.Candidates(coordtest.Limited(t))
		require.NoError(t, err)
		require.NoError(t, w.Admin().Delete(line[1].Node, -1))
		zktest.Eventually(t, coordtest.Soon, func() bool {
			line, err = e.Candidates(coordtest.Limited(t))
			require.NoError(t, err)
			return len(line) == 3
		}, "three in line again")
		require.NoError(t, leader.Resign(coordtest.Limited(t)))
		next := won(t, third)
		require.Empty(t, second)
		require.NoError(t, next.Resign(coordtest.Limited(t)))
		require.NoError(t, won(t, second).Resign(coordtest.Limited(t)))
	})
}

func TestALeaderWhoseNodeIsDeletedLeadsNoMore(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		term := elected(t, at(t, coordtest.Open(t, w.ConnectString()), w.Path("election")), "leader")
		require.NoError(t, w.Admin().Delete(term.Node(), -1))
		zktest.Receive(t, coordtest.Soon, term.Done(), "the end of the term")
		require.ErrorIs(t, term.Err(), coord.ErrLost)
		require.ErrorIs(t, term.Err(), coord.ErrNodeDeleted)
		require.ErrorIs(t, term.Proclaim(coordtest.Limited(t), []byte("x")), coord.ErrLost)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestAProclamationAfterTheSessionsEndFailsAtOnce(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		term := elected(t, at(t, c, w.Path("election")), "leader")
		w.ExpireSession(term.Session())
		zktest.Receive(t, coordtest.Soon, term.Done(), "the end of the term")
		failed := make(chan error, 1)
		go func() { failed <- term.Proclaim(t.Context(), []byte("x")) }()
		err := zktest.Receive(t, coordtest.Soon, failed, "the answer, though no deadline was given")
		require.ErrorIs(t, err, coord.ErrLost)
		require.ErrorIs(t, err, coord.ErrSessionExpired)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestALeaderThatIsCutOffLeadsNoMoreBeforeTheNextDoes(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, p := w.Path("election"), w.Proxy()
		leader := elected(t, at(t, coordtest.Open(t, p.Addr()), path), "leader")
		second := stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, "second", 2)
		p.Blackhole(proxy.Both)
		select {
		case <-leader.Done():
			require.Empty(t, second, "two lead")
		case <-second:
			t.Fatal("the next leads before the last has given up")
		case <-coordtest.Limited(t).Done():
			t.Fatal("the term of a leader that is cut off does not end")
		}
		next := won(t, second)
		p.Heal()
		require.NoError(t, next.Resign(coordtest.Limited(t)))
	})
}

func TestTheReplyToACandidatesCreateIsLost(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, p := w.Path("election"), w.Proxy()
		e := at(t, coordtest.Open(t, p.Addr()), path)
		require.NoError(t, elected(t, e, "first").Resign(coordtest.Limited(t)))
		lost := p.Inject(proxy.Fault{On: proxy.Creates, Path: path, Do: proxy.CutOnReply})
		term := elected(t, e, "second")
		require.Equal(t, 1, lost.Fired())
		lined(t, w, path, 1)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestALeaderIsAskedToStepDown(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		c := coordtest.Open(t, w.ConnectString())
		e := at(t, c, path)
		term := elected(t, at(t, coordtest.Open(t, w.ConnectString()), path), "leader")
		leader := leaderOf(t, e)
		require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, leader.Node))
		zktest.Receive(t, coordtest.Soon, term.Revoked(), "the request")
		require.NoError(t, term.Err(), "to be asked is not to lose")
		leader = leaderOf(t, e)
		require.True(t, leader.Revoked)
		require.Equal(t, "leader", string(leader.Data))
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestARequestToStepDownSurvivesAProclamation(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		e := at(t, c, w.Path("election"))
		for range 20 { // the leader's own watch may be quicker or slower
			term := elected(t, e, "leader")
			require.NoError(t, inspect.Revoke(coordtest.Limited(t), c, term.Node()))
			require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("news")))
			zktest.Receive(t, coordtest.Soon, term.Revoked(), "the request")
			leader := leaderOf(t, e)
			require.Equal(t, "news", string(leader.Data))
			require.NoError(t, term.Resign(coordtest.Limited(t)))
		}
	})
}

func TestALostProclamationIsRepeated(t *testing.T) {
	for name, action := range map[string]proxy.Action{"reply": proxy.CutOnReply, "request": proxy.DropAndCut} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				path, p := w.Path("election"), w.Proxy()
				e := at(t, coordtest.Open(t, p.Addr()), path)
				term := elected(t, e, "old")
				lost := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: path, Do: action})
				require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("new")))
				require.Equal(t, 1, lost.Fired())
				require.NoError(t, term.Err())
				leader := leaderOf(t, e)
				require.Equal(t, "new", string(leader.Data))
				require.NoError(t, term.Resign(coordtest.Limited(t)))
			})
		})
	}
}

func TestProclamationsOfOneTermFollowOneAnother(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		term := elected(t, e, "")
		done := make(chan error)
		for i := range 10 {
			go func() { done <- term.Proclaim(coordtest.Limited(t), []byte{byte(i)}) }()
		}
		for range 10 {
			require.NoError(t, zktest.Receive(t, coordtest.Soon, done, "a proclamation"))
		}
		_, stat, err := w.Admin().Get(inspect.Notice(term.Node()))
		require.NoError(t, err)
		require.EqualValues(t, 10, stat.Version)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestAProclamationWaitsForTheOneBeforeItNoLongerThanItsContext(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := w.Proxy()
	term := elected(t, at(t, coordtest.Open(t, p.Addr()), w.Path("election")), "")
	free := make(chan struct{})
	held := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: w.Path("election"), Do: proxy.Hold(free)})
	first := make(chan error, 1)
	go func() { first <- term.Proclaim(coordtest.Limited(t), []byte("first")) }()
	zktest.Receive(t, coordtest.Soon, held.First(), "the first proclamation")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, term.Proclaim(ctx, []byte("second")), context.Canceled)
	close(free)
	require.NoError(t, zktest.Receive(t, coordtest.Soon, first, "the first proclamation"))
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}
