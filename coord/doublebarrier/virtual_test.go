package doublebarrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestTheNextMemberClosesTheRoundWhenTheOnesBeforeItAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(4)
		second, third := leaving(b.Context(), members[1]), leaving(b.Context(), members[2])
		fourth := leaving(b.Context(), members[3])
		time.Sleep(lasts)
		b.kill(cs[0])
		requireMissing(t, []int{0}, told(t, second, third, fourth)...)
	})
}

func TestAMemberThatDiesBeforeItHasFinishedIsMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(3)
		monitor := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		b.kill(cs[1])
		time.Sleep(lasts)
		pending(t, "left before the last was done", monitor)
		requireMissing(t, []int{1}, members[2].Leave(b.Context()))
		requireMissing(t, []int{1}, <-monitor)
	})
}

// The late member saw the size that it wants; its node is made only after
// another client, which saw nobody there, has set another size.
func TestAMemberIsRefusedWhenTheSizeChangesAsItComes(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, two := b.pool(3, 2)
		through(t, b.enter(two[:2]...)...)
		b.Server.Inject(zkembed.Match{
			Session: cs[2].Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/b/", Times: 1,
		}, zkembed.Delay(lasts))
		late := entering(b.Context(), two[2])
		time.Sleep(lasts / 2)
		three := []*doublebarrier.Barrier{barrier(b, cs[0], "/b", 3), barrier(b, cs[1], "/b", 3)}
		ctx := b.Within(3 * lasts)
		one, other := entering(ctx, three[0]), entering(ctx, three[1])
		require.ErrorIs(t, (<-late).Err, coord.ErrDisagree)
		require.ErrorIs(t, (<-one).Err, context.DeadlineExceeded)
		require.ErrorIs(t, (<-other).Err, context.DeadlineExceeded)
	})
}

// The reply to the request that closes the round is lost. When it is repeated,
// the next round is open already, and the member that closes is still there.
func TestARepeatedCloseDoesNotTouchTheNextRound(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		members := entered(t, b.enter(bs[:2]...)...)
		closes := zkembed.Match{
			Session: cs[0].Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b/ready", Times: 1,
		}
		lost, repeated := b.Server.Inject(closes, zkembed.LoseReply()), b.Server.Inject(closes, zkembed.Delay(4*lasts))
		first, second := leaving(b.Context(), members[0]), leaving(b.Context(), members[1])
		require.NoError(t, <-second)
		next := entered(t, b.enter(bs[1:]...)...)
		require.NoError(t, <-first)
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, repeated.Fired())
		s, err := bs[0].Status(b.Context())
		require.NoError(t, err)
		require.True(t, s.Open)
		require.EqualValues(t, 2, s.Round)
		leave(t, next...)
	})
}

// The answer to the last member's mark is lost with its connection and its
// watch on ready; the first closes the round before the last reads ready again.
func TestALeaverThatLearnsOfItsMarkAfterTheEndLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		mark := b.Server.Inject(zkembed.Match{
			Session: cs[1].Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: members[1].Node(), Times: 1,
		}, zkembed.LoseReply())
		again := b.Server.Inject(zkembed.Match{
			Session: cs[1].Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b/ready", Times: 1,
		}, zkembed.Delay(lasts))
		second := leaving(b.Context(), members[1])
		require.Equal(t, []error{nil, nil}, told(t, first, second))
		require.Equal(t, 1, mark.Fired())
		require.Equal(t, 1, again.Fired())
		require.Empty(t, b.Server.Watched())
	})
}

// The connection is lost while both are inside, and the watch on ready is set
// again so slowly that the round could be over by then.
func TestALeaverWatchesReadyBeforeTheRoundCanEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		require.NoError(t, b.Server.DropConn(cs[1].Info().SessionID))
		time.Sleep(lasts)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		watch := b.Server.Inject(zkembed.Match{
			Session: cs[1].Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b/ready", Skip: 1, Times: 1,
		}, zkembed.Delay(lasts))
		require.NoError(t, members[1].Leave(b.Context()))
		require.NoError(t, <-first)
		require.Equal(t, 1, watch.Fired())
		require.Empty(t, b.Server.Watched())
	})
}

// expireUnheard ends the session of a client, which learns of that only after
// the server is healed.
func (b bubble) expireUnheard(c *coord.Client) {
	b.Helper()
	b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
	require.NoError(b, b.Server.DropConn(c.Info().SessionID))
	require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
	time.Sleep(lasts)
}

// The member's session is over, and the others have left without it, before it
// learns of that.
func TestAMemberThatHearsOfItsLossAfterTheEndLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		b.expireUnheard(cs[1])
		require.NoError(t, members[1].Err())
		late := leaving(b.Context(), members[1])
		time.Sleep(time.Millisecond)
		b.Server.Heal()
		requireMissing(t, []int{1}, <-first)
		require.ErrorIs(t, <-late, coord.ErrLost)
		require.Empty(t, b.Server.Watched())
	})
}

// A member that cannot reach the servers has lost its place when they may have
// expired its session, during any call.
func TestLeaveEndsWithTheMembershipWhenNoServerCanBeReached(t *testing.T) {
	for name, early := range map[string]bool{"called before": true, "called since": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				_, members := b.begun(2)
				var left <-chan error
				if early {
					left = leaving(b.Context(), members[1])
					time.Sleep(lasts)
				}
				b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
				b.Server.DropConns()
				cutOff := time.Now()
				if !early {
					time.Sleep(lasts)
					left = leaving(b.Context(), members[1])
				}
				require.ErrorIs(t, <-left, coord.ErrLost)
				require.LessOrEqual(t, time.Since(cutOff), coordtest.T)
				b.Server.Heal()
			})
		})
	}
}

// The context is the member's, and ends with it: here when the client learns
// that its session is over, while Leave waits for a connection.
func TestLeaveReportsALossAlsoWhenItsContextEndsWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		b.expireUnheard(cs[1])
		left := leaving(members[1].Context(b.Context()), members[1])
		time.Sleep(time.Millisecond)
		b.Server.Heal()
		require.ErrorIs(t, <-left, coord.ErrLost)
	})
}

func TestLeaveReportsALossThatCameBeforeTheContextsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		require.NoError(t, inspect.Break(b.Context(), cs[0], members[1].Node()))
		require.NoError(t, b.Server.DropConn(cs[1].Info().SessionID)) // has ready looked at
		<-members[1].Done()
		time.Sleep(lasts)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.ErrorIs(t, members[1].Leave(ctx), coord.ErrLost)
		requireMissing(t, []int{1}, members[0].Leave(b.Context()))
	})
}

// The member was cut off, the round ended without it, and the barrier was
// removed.
func TestAMemberThatLostItsPlaceGetsAnErrorAlsoWhenTheBarrierIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		late := leaving(b.Context(), members[1])
		time.Sleep(lasts)
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[1].Info().SessionID}})
		require.NoError(t, b.Server.ExpireSession(cs[1].Info().SessionID))
		requireMissing(t, []int{1}, members[0].Leave(b.Context()))
		require.NoError(t, barrier(t, cs[0], "/b", 2).Remove(b.Context()))
		cut.Heal()
		err := <-late
		require.ErrorIs(t, err, coord.ErrLost)
		require.NotErrorIs(t, err, doublebarrier.ErrBroken)
	})
}

func TestMain(m *testing.M) { zktest.Main(m) }

// steady is a session timeout that a busy machine can keep. Where a session
// has to end, the tests end it.
const steady = 20 * time.Second

// open returns a client of the servers that is closed with the test.
func open(t *testing.T, servers string, opts ...coord.Option) *coord.Client {
	t.Helper()
	return coordtest.Open(t, servers, append([]coord.Option{coord.WithSessionTimeout(steady)}, opts...)...)
}

func barrier(t testing.TB, c *coord.Client, path string, n int, opts ...doublebarrier.Option) *doublebarrier.Barrier {
	t.Helper()
	b, err := doublebarrier.New(c, path, n, opts...)
	require.NoError(t, err)
	return b
}

// arrival is a call of Enter in the background.
type arrival = <-chan coordtest.Outcome[*doublebarrier.Member]

// entering calls Enter in the background.
func entering(ctx context.Context, b *doublebarrier.Barrier) arrival {
	return coordtest.Begin(ctx, b.Enter)
}

// leaving calls Leave in the background.
func leaving(ctx context.Context, m *doublebarrier.Member) <-chan error {
	return coordtest.Go(func() error { return m.Leave(ctx) })
}

// entered waits until all have entered, and returns them in the order given.
func entered(t testing.TB, entering ...arrival) (members []*doublebarrier.Member) {
	t.Helper()
	for _, e := range entering {
		o := zktest.Receive(t, coordtest.Soon, e, "a member enters")
		require.NoError(t, o.Err)
		members = append(members, o.Value)
	}
	return members
}

// round lets all the barriers' members enter together and returns them by
// index.
func round(t testing.TB, barriers ...*doublebarrier.Barrier) []*doublebarrier.Member {
	t.Helper()
	var all []arrival
	for _, b := range barriers {
		all = append(all, entering(t.Context(), b))
	}
	members := make([]*doublebarrier.Member, len(all))
	for _, m := range entered(t, all...) {
		require.Nil(t, members[m.Index()], "two members with one index")
		members[m.Index()] = m
	}
	return members
}

// leaveAll lets all members leave together and returns what Leave told each.
func leaveAll(t testing.TB, members ...*doublebarrier.Member) []error {
	t.Helper()
	var all []<-chan error
	for _, m := range members {
		all = append(all, leaving(t.Context(), m))
	}
	return told(t, all...)
}

// told waits until all have left, and returns what Leave told each.
func told(t testing.TB, leaving ...<-chan error) (all []error) {
	t.Helper()
	for _, l := range leaving {
		all = append(all, zktest.Receive(t, coordtest.Soon, l, "a member leaves"))
	}
	return all
}

// leave lets all members leave together: all have finished.
func leave(t testing.TB, members ...*doublebarrier.Member) {
	t.Helper()
	require.Equal(t, make([]error, len(members)), leaveAll(t, members...))
}

// through lets all who are entering enter, and leave together.
func through(t testing.TB, entering ...arrival) {
	t.Helper()
	leave(t, entered(t, entering...)...)
}

// waiting waits until n members wait for a round to begin.
func waiting(t testing.TB, b *doublebarrier.Barrier, n int) {
	t.Helper()
	zktest.Eventually(t, coordtest.Soon, func() bool {
		s, err := b.Status(t.Context())
		return err == nil && len(s.Waiting) == n
	}, "%d members wait", n)
}

// pending fails the test if a call has ended that must wait for others.
func pending[T any](t testing.TB, what string, calls ...<-chan T) {
	t.Helper()
	for _, c := range calls {
		select {
		case v := <-c:
			t.Fatalf("%s: %v", what, v)
		default:
		}
	}
}

const T = coordtest.T

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(t *testing.T, b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(b.T, bubble{b}) }, opts...)
}

// The caller with another number of members has no watch on the record any
// more, sees nobody there, and a round begins before it reads the record again.
func TestARoundThatHasBegunMeanwhileIsNotEndedForAnotherSize(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, three := b.pool(4, 3)
		through(t, b.enter(three[:3]...)...)
		lists := zkembed.Match{
			Session: cs[3].Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: "/b", Times: 1,
		}
		b.Server.Inject(lists, zkembed.LoseReply())
		late := b.Server.Inject(lists, zkembed.DelayReply(lasts))
		four := entering(b.Context(), barrier(b, cs[3], "/b", 4))
		<-late.Struck()
		members := round(t, three[:3]...)
		require.ErrorIs(t, (<-four).Err, coord.ErrDisagree)
		leave(t, members...)
	})
}
