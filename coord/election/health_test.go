package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// ailing is a check that a test has fail or hang.
type ailing struct {
	sick, hangs atomic.Bool
	calls       atomic.Int32
}

var errDisk = errors.New("the disk is full")

func (a *ailing) check(ctx context.Context) error {
	a.calls.Add(1)
	switch {
	case a.hangs.Load():
		<-ctx.Done()
		return nil // too late
	case a.sick.Load():
		return errDisk
	}
	return nil
}

// every and failures are those of the checks of these tests.
const (
	every    = 10 * time.Second
	failures = 3
)

// checked is an election whose candidates are well as long as the check says
// so.
func checked(b coordtest.Bubble, check func(context.Context) error) *election.Election {
	b.Helper()
	return at(b, b.Open(), electionPath, election.Health(every, failures, check))
}

// leads runs a candidate, whose terms are told on a channel: each begins with
// its context, and ends with it. stop ends the run, and returns its error.
func leads(b coordtest.Bubble, e *election.Election) (begun, over chan context.Context, stop func() error) {
	ctx, cancel := context.WithCancel(b.Context())
	begun, over = make(chan context.Context, 10), make(chan context.Context, 10)
	done := coordtest.Go(func() error {
		return e.Run(ctx, nil, func(ctx context.Context, _ *election.Term) error {
			begun <- ctx
			<-ctx.Done()
			over <- ctx
			return ctx.Err()
		})
	})
	return begun, over, func() error { cancel(); return <-done }
}

func TestASickLeaderResignsAndStandsAgainWhenItIsWell(t *testing.T) {
	coordtest.InBubbles(t, map[string]func(a *ailing, ill bool){
		"fails": func(a *ailing, ill bool) { a.sick.Store(ill) },
		"hangs": func(a *ailing, ill bool) { a.hangs.Store(ill) },
	}, func(b coordtest.Bubble, ail func(a *ailing, ill bool)) {
		var a, other ailing
		begun, over, stop := leads(b, checked(b, a.check))
		<-begun
		next, _, stopOther := leads(b, checked(b, other.check))
		time.Sleep(10 * every)
		require.Empty(b, over, "resigned while it was well")
		ill := time.Now()
		ail(&a, true)
		ended := <-over
		require.ErrorIs(b, context.Cause(ended), hold.ErrUnwell)
		if a.sick.Load() {
			require.ErrorIs(b, context.Cause(ended), errDisk)
			require.LessOrEqual(b, time.Since(ill), failures*every)
		}
		require.LessOrEqual(b, time.Since(ill), (failures+1)*every)
		require.GreaterOrEqual(b, time.Since(ill), (failures-1)*every)
		leader := <-next
		time.Sleep(time.Hour)
		require.NoError(b, leader.Err())
		line := coordtest.Call(b, checked(b, other.check).Contenders)
		require.Len(b, line, 1, "the sick one stands")
		ail(&a, false)
		time.Sleep(time.Minute)
		line = coordtest.Call(b, checked(b, other.check).Contenders)
		require.Len(b, line, 2, "the one that is well again does not stand")
		require.Empty(b, begun)
		ail(&other, true)
		<-begun
		require.ErrorIs(b, stop(), context.Canceled)
		require.ErrorIs(b, stopOther(), context.Canceled)
	})
}

func TestFewerFailuresInARowEndNoTerm(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var calls atomic.Int32
		e := checked(b, func(context.Context) error {
			if calls.Add(1)%failures == 1 {
				return nil
			}
			return errDisk
		})
		begun, over, stop := leads(b, e)
		<-begun
		time.Sleep(time.Hour)
		require.Empty(b, over)
		require.Greater(b, calls.Load(), int32(300))
		require.ErrorIs(b, stop(), context.Canceled)
	})
}

func TestASickCandidateLeavesTheLine(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var a, other ailing
		e := checked(b, other.check)
		first := elected(b, e, "leader")
		begun, _, stop := leads(b, checked(b, a.check))
		time.Sleep(time.Minute)
		a.sick.Store(true)
		time.Sleep(time.Minute)
		require.Len(b, coordtest.Call(b, e.Contenders), 1)
		require.NoError(b, first.Resign(b.Context()))
		time.Sleep(time.Hour)
		require.Empty(b, begun, "a sick one leads")
		err := stop()
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorIs(b, err, errDisk)
	})
}

// The term lasts until the function has returned: it may still act.
func TestASickLeaderResignsAfterItsFunctionHasReturned(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		var a, other ailing
		goOn := make(chan bool)
		done := coordtest.Go(func() error {
			return checked(b, a.check).Run(ctx, nil, func(ctx context.Context, _ *election.Term) error {
				<-goOn
				return errDisk // says no more than the check
			})
		})
		time.Sleep(time.Second)
		next, _, stop := leads(b, checked(b, other.check))
		a.sick.Store(true)
		time.Sleep(time.Hour)
		require.Empty(b, next, "two lead")
		close(goOn)
		<-next
		require.Empty(b, done, "Run has ended")
		cancel()
		<-done
		_ = stop()
	})
}

// A check that ignores its context is not called again and again beside itself.
func TestACheckRunsOnceAtATime(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		stuck := make(chan bool)
		var calls atomic.Int32
		e := checked(b, func(context.Context) error {
			if calls.Add(1) > 1 {
				<-stuck
			}
			return nil
		})
		begun, over, stop := leads(b, e)
		<-begun
		<-over
		time.Sleep(time.Hour)
		require.EqualValues(b, 2, calls.Load())
		close(stuck)
		<-begun
		require.ErrorIs(b, stop(), context.Canceled)
	})
}

func TestOptionsOfAnElectionThatCannotBe(t *testing.T) {
	well := func(context.Context) error { return nil }
	for _, opt := range []election.Option{
		nil, election.Health(0, 1, well), election.Health(time.Second, 0, well), election.Health(time.Second, 1, nil),
	} {
		_, err := election.New(&coord.Client{}, "/e", opt)
		require.ErrorIs(t, err, coord.ErrInvalid)
		require.ErrorContains(t, err, "/e")
	}
}
