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
	each(t, func(s scene) {
		a := run(s.Context(), s.candidate(), "a")
		first := zktest.Receive(s, coordtest.Soon, a.begun, "a leads")
		b := run(s.Context(), s.candidate(), "b")
		s.lined(2)
		require.Empty(s, b.begun, "two lead")
		a.back <- nil
		second := zktest.Receive(s, coordtest.Soon, b.begun, "b leads")
		require.Greater(s, second.Token(), first.Token())
		s.lined(2) // a stands again
		failure := errors.New("b cannot go on")
		b.back <- failure
		require.Equal(s, failure, zktest.Receive(s, coordtest.Soon, b.done, "the end of b's Run"))
		third := zktest.Receive(s, coordtest.Soon, a.begun, "a leads again")
		require.Greater(s, third.Token(), second.Token())
		a.back <- errors.New("enough")
		require.EqualError(s, zktest.Receive(s, coordtest.Soon, a.done, "the end of a's Run"), "enough")
	})
}

func TestRunWaitsForItsFunctionAfterALossAndThenCampaignsAgain(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		a := run(s.Context(), s.at(c), "a")
		first := zktest.Receive(s, coordtest.Soon, a.begun, "a leads")
		b := run(s.Context(), s.candidate(), "b")
		s.lined(2)
		s.w.ExpireSession(c.Info().SessionID)
		zktest.Receive(s, coordtest.Soon, a.over, "the end of a's term")
		zktest.Receive(s, coordtest.Soon, b.begun, "b leads")
		require.ErrorIs(s, first.Err(), coord.ErrLost)
		// a has a session again, but its function has not returned.
		zktest.Eventually(s, coordtest.Soon,
			func() bool { return c.Info().SessionID != 0 && c.Info().SessionID != first.Session() }, "a session")
		require.NoError(s, coordtest.Write(coordtest.Limited(s), c))
		s.lined(1)
		a.back <- errors.New("whatever a lost leader says")
		s.lined(2)
		require.Empty(s, a.begun)
		b.back <- nil
		second := zktest.Receive(s, coordtest.Soon, a.begun, "a leads again")
		require.Greater(s, second.Token(), first.Token())
		a.back <- errors.New("enough")
		zktest.Receive(s, coordtest.Soon, a.done, "the end of a's Run")
		zktest.Receive(s, coordtest.Soon, b.begun, "b leads again")
		b.back <- errors.New("enough")
		zktest.Receive(s, coordtest.Soon, b.done, "the end of b's Run")
	})
}

func TestRunEndsWithItsContextWhenItsFunctionHasReturned(t *testing.T) {
	each(t, func(s scene) {
		ctx, cancel := context.WithCancelCause(s.Context())
		a := run(ctx, s.candidate(), "a")
		term := zktest.Receive(s, coordtest.Soon, a.begun, "a leads")
		shutdown := errors.New("the process is told to end")
		cancel(shutdown)
		zktest.Receive(s, coordtest.Soon, a.over, "the end of the function's context")
		require.Empty(s, a.done, "Run returned before its function")
		require.NoError(s, term.Err(), "resigned while the function was at work")
		s.lined(1)
		a.back <- nil
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, a.done, "the end of Run"), shutdown)
		require.ErrorIs(s, term.Err(), coord.ErrReleased)
		s.lined(0)
	})
}

func TestRunEndsWhenItsClientIsClosed(t *testing.T) {
	s := onEmbedded(t)
	c := coordtest.Open(s, s.w.ConnectString())
	a := run(s.Context(), s.at(c), "a")
	zktest.Receive(s, coordtest.Soon, a.begun, "a leads")
	require.NoError(s, c.Close(context.Background()))
	zktest.Receive(s, coordtest.Soon, a.over, "the end of the term")
	a.back <- nil
	require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, a.done, "the end of Run"), coord.ErrClosed)
}

func TestALeaderThatPanicsResigns(t *testing.T) {
	s := onEmbedded(t)
	e := s.candidate()
	require.PanicsWithValue(s, "mutiny", func() {
		_ = e.Run(s.Context(), nil, func(context.Context, *election.Term) error { panic("mutiny") })
	})
	s.lined(0)
}

func TestAFunctionThatMayResignItsTermItself(t *testing.T) {
	s := onEmbedded(t)
	n, enough := 0, errors.New("enough")
	e := s.candidate()
	err := e.Run(s.Context(), nil, func(ctx context.Context, term *election.Term) error {
		n++
		if n == 3 {
			return enough
		}
		return term.Resign(ctx)
	})
	require.Equal(s, enough, err)
	s.lined(0)
}

// A candidate that cannot lead must not keep the others from it.
func TestTermsThatEndAtOnceFollowOneAnotherMoreAndMoreSlowly(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		n := 0
		err := at(b, b.Open(), electionPath).Run(b.Within(10*time.Minute), nil,
			func(context.Context, *election.Term) error { n++; return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		longest := T / 2
		require.Less(t, n, int(10*time.Minute/(longest/2))+20)
		require.Greater(t, n, int(10*time.Minute/(longest*3/2)))
	})
}

func TestACandidateWhoseSessionDiedWhileItWaitedIsNotElected(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		leader := elected(s, s.candidate(), "leader")
		doomed := coordtest.Open(s, p.Addr())
		second := s.stand(s.Context(), s.at(doomed), "second", 2)
		third := s.stand(s.Context(), s.candidate(), "third", 3)
		p.Refuse() // it will not hear of its end for a while
		old := doomed.Info().SessionID
		s.w.ExpireSession(old)
		require.NoError(s, leader.Resign(coordtest.Limited(s)))
		next := coordtest.Had(s, third)
		require.Empty(s, second, "a dead candidate was elected")
		p.Heal()
		s.lined(2)
		require.Empty(s, second, "elected by the place of the dead session")
		require.NoError(s, next.Resign(coordtest.Limited(s)))
		again := coordtest.Had(s, second)
		require.NotEqual(s, old, again.Session())
		require.Greater(s, again.Token(), next.Token())
		require.NoError(s, again.Resign(coordtest.Limited(s)))
	})
}

func TestALeaderWhoseNodeOrSessionIsGoneLeadsNoMoreAndProclaimsNothing(t *testing.T) {
	for cause, lose := range map[error]func(s scene, term *election.Term){
		coord.ErrNodeDeleted: func(s scene, term *election.Term) {
			require.NoError(s, s.w.Admin().Delete(term.Node(), -1))
		},
		coord.ErrSessionExpired: func(s scene, term *election.Term) { s.w.ExpireSession(term.Session()) },
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			each(t, func(s scene) {
				term := elected(s, s.candidate(), "leader")
				lose(s, term)
				zktest.Receive(s, coordtest.Soon, term.Done(), "the end of the term")
				failed := coordtest.Go(func() error { return term.Proclaim(s.Context(), []byte("x")) })
				for _, err := range []error{
					term.Err(), zktest.Receive(s, coordtest.Soon, failed, "the answer, though no deadline was given"),
				} {
					require.ErrorIs(s, err, coord.ErrLost)
					require.ErrorIs(s, err, cause)
				}
				require.NoError(s, term.Resign(coordtest.Limited(s)))
			})
		})
	}
}

func TestALeaderThatIsCutOffLeadsNoMoreBeforeTheNextDoes(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		leader := elected(s, s.behind(), "leader")
		second := s.stand(s.Context(), s.candidate(), "second", 2)
		p.Blackhole(proxy.Both)
		zktest.Receive(s, coordtest.Soon, leader.Done(), "the end of the term")
		require.Empty(s, second, "the next leads before the last has given up")
		next := coordtest.Had(s, second)
		p.Heal()
		require.NoError(s, next.Resign(coordtest.Limited(s)))
	})
}

func TestALeaderIsAskedToStepDown(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		e, term := s.at(c), elected(s, s.candidate(), "leader")
		leader := coordtest.Call(s, e.Leader)
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, leader.Node))
		zktest.Receive(s, coordtest.Soon, term.Revoked(), "the request")
		require.NoError(s, term.Err(), "to be asked is not to lose")
		leader = coordtest.Call(s, e.Leader)
		require.True(s, leader.Revoked)
		require.Equal(s, "leader", string(leader.Data))
		require.NoError(s, term.Resign(coordtest.Limited(s)))
	})
}

func TestARequestToStepDownSurvivesAProclamation(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		e := s.at(c)
		for range 20 { // the leader's own watch may be quicker or slower
			term := elected(s, e, "leader")
			require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, term.Node()))
			require.NoError(s, term.Proclaim(coordtest.Limited(s), []byte("news")))
			zktest.Receive(s, coordtest.Soon, term.Revoked(), "the request")
			require.Equal(s, "news", string(coordtest.Call(s, e.Leader).Data))
			require.NoError(s, term.Resign(coordtest.Limited(s)))
		}
	})
}

func TestALostProclamationIsRepeated(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		each(t, func(s scene) {
			e := s.behind()
			term := elected(s, e, "old")
			lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.path, Do: action})
			require.NoError(s, term.Proclaim(coordtest.Limited(s), []byte("new")))
			require.Equal(s, 1, lost.Fired())
			require.NoError(s, term.Err())
			require.Equal(s, "new", string(coordtest.Call(s, e.Leader).Data))
			require.NoError(s, term.Resign(coordtest.Limited(s)))
		})
	})
}

func TestProclamationsOfOneTermFollowOneAnother(t *testing.T) {
	each(t, func(s scene) {
		term := elected(s, s.candidate(), "")
		done := make(chan error)
		for i := range 10 {
			go func() { done <- term.Proclaim(coordtest.Limited(s), []byte{byte(i)}) }()
		}
		for range 10 {
			require.NoError(s, zktest.Receive(s, coordtest.Soon, done, "a proclamation"))
		}
		_, stat, err := s.w.Admin().Get(inspect.Notice(term.Node()))
		require.NoError(s, err)
		require.EqualValues(s, 10, stat.Version)
		require.NoError(s, term.Resign(coordtest.Limited(s)))
	})
}

func TestAProclamationWaitsForTheOneBeforeItNoLongerThanItsContext(t *testing.T) {
	s := onEmbedded(t)
	term := elected(s, s.behind(), "")
	free := make(chan struct{})
	held := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.path, Do: proxy.Hold(free)})
	first := coordtest.Go(func() error { return term.Proclaim(coordtest.Limited(s), []byte("first")) })
	zktest.Receive(s, coordtest.Soon, held.First(), "the first proclamation")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	require.ErrorIs(s, term.Proclaim(ctx, []byte("second")), context.Canceled)
	close(free)
	require.NoError(s, zktest.Receive(s, coordtest.Soon, first, "the first proclamation"))
	require.NoError(s, term.Resign(coordtest.Limited(s)))
}
