package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// terms is a Run in the background whose function reports each term and returns
// what the test says.
type terms struct {
	begun chan *election.Term
	over  chan struct{} // the function's context has ended
	back  chan error    // the function's result
	done  chan error    // Run has returned
}

func run(ctx context.Context, e *election.Election, data string) *terms {
	r := &terms{make(chan *election.Term, 100), make(chan struct{}, 100), make(chan error), make(chan error, 1)}
	go func() {
		r.done <- e.Run(ctx, []byte(data), func(ctx context.Context, t *election.Term) error {
			r.begun <- t
			stop := context.AfterFunc(ctx, func() { r.over <- struct{}{} })
			defer stop()
			return <-r.back
		})
	}()
	return r
}

func TestRunLeadsAgainAfterItsFunctionResigned(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		a := run(t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), "a")
		first := zktest.Receive(t, coordtest.Soon, a.begun, "a leads")
		b := run(t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), "b")
		lined(t, w, path, 2)
		require.Empty(t, b.begun, "two lead")
		a.back <- nil
		second := zktest.Receive(t, coordtest.Soon, b.begun, "b leads")
		require.Greater(t, second.Token(), first.Token())
		lined(t, w, path, 2) // a stands again
		failure := errors.New("b cannot go on")
		b.back <- failure
		require.Equal(t, failure, zktest.Receive(t, coordtest.Soon, b.done, "the end of b's Run"))
		third := zktest.Receive(t, coordtest.Soon, a.begun, "a leads again")
		require.Greater(t, third.Token(), second.Token())
		a.back <- errors.New("enough")
		require.EqualError(t, zktest.Receive(t, coordtest.Soon, a.done, "the end of a's Run"), "enough")
	})
}

func TestRunWaitsForItsFunctionAfterALossAndThenCampaignsAgain(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		c := coordtest.Open(t, w.ConnectString())
		a := run(t.Context(), at(t, c, path), "a")
		first := zktest.Receive(t, coordtest.Soon, a.begun, "a leads")
		b := run(t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), "b")
		lined(t, w, path, 2)
		w.ExpireSession(c.SessionID())
		zktest.Receive(t, coordtest.Soon, a.over, "the end of a's term")
		zktest.Receive(t, coordtest.Soon, b.begun, "b leads")
		require.ErrorIs(t, first.Err(), coord.ErrLost)
		// a has a session again, but its function has not returned.
		zktest.Eventually(t, coordtest.Soon, func() bool { return c.SessionID() != 0 && c.SessionID() != first.Session() }, "a session")
		require.NoError(t, coordtest.Write(coordtest.Limited(t), c))
		lined(t, w, path, 1)
		a.back <- errors.New("whatever a lost leader says")
		lined(t, w, path, 2)
		require.Empty(t, a.begun)
		b.back <- nil
		second := zktest.Receive(t, coordtest.Soon, a.begun, "a leads again")
		require.Greater(t, second.Token(), first.Token())
		a.back <- errors.New("enough")
		zktest.Receive(t, coordtest.Soon, a.done, "the end of a's Run")
		zktest.Receive(t, coordtest.Soon, b.begun, "b leads again")
		b.back <- errors.New("enough")
		zktest.Receive(t, coordtest.Soon, b.done, "the end of b's Run")
	})
}

func TestRunEndsWithItsContextWhenItsFunctionHasReturned(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		ctx, cancel := context.WithCancelCause(t.Context())
		a := run(ctx, at(t, coordtest.Open(t, w.ConnectString()), path), "a")
		term := zktest.Receive(t, coordtest.Soon, a.begun, "a leads")
		shutdown := errors.New("the process is told to end")
		cancel(shutdown)
		zktest.Receive(t, coordtest.Soon, a.over, "the end of the function's context")
		require.Empty(t, a.done, "Run returned before its function")
		require.NoError(t, term.Err(), "resigned while the function was at work")
		lined(t, w, path, 1)
		a.back <- nil
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, a.done, "the end of Run"), shutdown)
		require.ErrorIs(t, term.Err(), coord.ErrReleased)
		lined(t, w, path, 0)
	})
}

func TestRunEndsWithItsContextWhileItWaits(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		term := elected(t, e, "leader")
		ctx, cancel := context.WithCancel(t.Context())
		a := run(ctx, e, "a")
		lined(t, w, path, 2)
		cancel()
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, a.done, "the end of Run"), context.Canceled)
		lined(t, w, path, 1)
		require.NoError(t, term.Resign(coordtest.Limited(t)))
	})
}

func TestRunEndsWhenItsClientIsClosed(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	a := run(t.Context(), at(t, c, w.Path("election")), "a")
	zktest.Receive(t, coordtest.Soon, a.begun, "a leads")
	require.NoError(t, c.Close(context.Background()))
	zktest.Receive(t, coordtest.Soon, a.over, "the end of the term")
	a.back <- nil
	require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, a.done, "the end of Run"), coord.ErrClosed)
}

func TestALeaderThatPanicsResigns(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	path := w.Path("election")
	e := at(t, coordtest.Open(t, w.ConnectString()), path)
	require.PanicsWithValue(t, "mutiny", func() {
		_ = e.Run(t.Context(), nil, func(context.Context, *election.Term) error { panic("mutiny") })
	})
	lined(t, w, path, 0)
}

func TestAFunctionThatMayResignItsTermItself(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	n, enough := 0, errors.New("enough")
	e := at(t, coordtest.Open(t, w.ConnectString()), w.Path("election"))
	err := e.Run(t.Context(), nil, func(ctx context.Context, term *election.Term) error {
		if n++; n == 3 {
			return enough
		}
		return term.Resign(ctx)
	})
	require.Equal(t, enough, err)
	lined(t, w, w.Path("election"), 0)
}

// A candidate that cannot lead must not keep the others from it.
func TestTermsThatEndAtOnceFollowOneAnotherMoreAndMoreSlowly(t *testing.T) {
	inBubble(t, func(b bubble) {
		ctx := b.Within(10 * time.Minute)
		e, err := election.New(b.Open(), "/election")
		require.NoError(t, err)
		n := 0
		err = e.Run(ctx, nil, func(context.Context, *election.Term) error { n++; return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		longest := T / 2
		require.Less(t, n, int(10*time.Minute/(longest/2))+20)
		require.Greater(t, n, int(10*time.Minute/(longest*3/2)))
	})
}

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
		failed := coordtest.Go(func() error { return term.Proclaim(t.Context(), []byte("x")) })
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
	first := coordtest.Go(func() error { return term.Proclaim(coordtest.Limited(t), []byte("first")) })
	zktest.Receive(t, coordtest.Soon, held.First(), "the first proclamation")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, term.Proclaim(ctx, []byte("second")), context.Canceled)
	close(free)
	require.NoError(t, zktest.Receive(t, coordtest.Soon, first, "the first proclamation"))
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}
