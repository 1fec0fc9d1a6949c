package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// terms is a Run in the background whose function reports each term and returns
// what the test says.
type terms struct {
	begun chan *election.Term
	over  chan struct{} // the function's context has ended
	back  chan error    // what the function is to return
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
