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

// inside waits until every member has entered.
func (b bubble) inside(entering ...<-chan outcome[*doublebarrier.Member]) (members []*doublebarrier.Member) {
	b.Helper()
	for _, e := range entering {
		o := <-e
		require.NoError(b, o.err)
		members = append(members, o.value)
	}
	return members
}

func TestAPlaceThatWasGivenUpHoldsNoRoundUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		ctx, cancel := context.WithCancel(b.Context())
		given := entering(ctx, bs[0])
		time.Sleep(lasts)
		cancel()
		require.ErrorIs(t, (<-given).err, context.Canceled)
		b.leaveAll(nil, b.enter(bs[1:]...)...)
		b.Close(cs...)
	})
}

func TestARoundWhoseMembersHaveAllCrashedHoldsNoMemberUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2)
		b.inside(b.enter(bs[:2]...)...)
		b.kill(cs[0])
		b.kill(cs[1])
		next := b.enter(bs[2:]...)
		b.leaveAll(nil, next...)
		b.Close(cs[2:]...)
	})
}

func TestThoseWhoWaitHearThatTheMembersOfTheRoundHaveAllCrashed(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2, doublebarrier.WaitForNextRound())
		b.inside(b.enter(bs[:2]...)...)
		next := b.enter(bs[2:]...)
		b.kill(cs[0])
		time.Sleep(lasts)
		pending(t, next[0], "entered while a member is inside")
		b.kill(cs[1])
		b.leaveAll(nil, next...)
		b.Close(cs[2:]...)
	})
}

func TestNoMemberLeavesBeforeTheLastIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 3)
		members := b.inside(b.enter(bs...)...)
		var left []<-chan error
		for i, m := range members {
			for _, l := range left {
				pending(t, l, "left before all were done")
			}
			left = append(left, leaving(b.Context(), m))
			if i < len(members)-1 {
				time.Sleep(lasts)
			}
		}
		for _, l := range left {
			require.NoError(t, <-l)
		}
		b.Close(cs...)
	})
}

func TestTheNextMemberClosesTheRoundWhenTheOnesBeforeItAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 4)
		members := b.inside(b.enter(bs...)...)
		second, third, fourth := leaving(b.Context(), members[1]), leaving(b.Context(), members[2]), leaving(b.Context(), members[3])
		time.Sleep(lasts)
		b.kill(cs[0])
		told := []error{<-second, <-third, <-fourth}
		for _, err := range told {
			requireMissing(t, err, 0)
		}
		b.Close(cs[1:]...)
	})
}

func TestAMemberThatDiesBeforeItHasFinishedIsMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 3)
		members := b.inside(b.enter(bs...)...)
		monitor := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		b.kill(cs[1])
		time.Sleep(lasts)
		pending(t, monitor, "left before the last was done")
		requireMissing(t, members[2].Leave(b.Context()), 1)
		requireMissing(t, <-monitor, 1)
		b.Close(cs[0], cs[2])
	})
}

// A request of another program overwrites the mark by which the others are to
// see that the member has finished, just before it dies.
func TestAMemberThatHasFinishedIsSeenToAlsoWhenItIsAskedToGiveUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		early := leaving(b.Context(), members[1])
		time.Sleep(lasts)
		require.NoError(t, coordtest.Err(cs[0].Set(b.Context(), members[1].Node(), []byte("__REVOKE__"), -1)))
		time.Sleep(lasts)
		require.NoError(t, members[0].Leave(b.Context()))
		require.NoError(t, <-early)
		b.Close(cs...)
	})
}

// It saw the size that it wants, and its node is made only after one who
// saw nobody there has set another.
func TestAMemberIsRefusedWhenTheSizeChangesAsItComes(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, two := b.pool(3, 2)
		b.leaveAll(nil, b.enter(two[:2]...)...)
		b.Server.Inject(zkembed.Match{
			Session: cs[2].SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/b/", Times: 1,
		}, zkembed.Delay(lasts))
		late := entering(b.Context(), two[2])
		time.Sleep(lasts / 2)
		three := []*doublebarrier.Barrier{barrier(b, cs[0], "/b", 3), barrier(b, cs[1], "/b", 3)}
		ctx := b.Within(3 * lasts)
		one, other := entering(ctx, three[0]), entering(ctx, three[1])
		require.ErrorIs(t, (<-late).err, doublebarrier.ErrSize)
		require.ErrorIs(t, (<-one).err, context.DeadlineExceeded)
		require.ErrorIs(t, (<-other).err, context.DeadlineExceeded)
		b.Close(cs...)
	})
}

// The reply to the close is lost, and when it is repeated the next round is
// open already, with the one that closes still there.
func TestARepeatedCloseDoesNotTouchTheNextRound(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		members := b.inside(b.enter(bs[:2]...)...)
		closes := zkembed.Match{
			Session: cs[0].SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b/ready", Times: 1,
		}
		lost, repeated := b.Server.Inject(closes, zkembed.LoseReply()), b.Server.Inject(closes, zkembed.Delay(4*lasts))
		first, second := leaving(b.Context(), members[0]), leaving(b.Context(), members[1])
		require.NoError(t, <-second)
		next := b.inside(b.enter(bs[1:]...)...)
		require.NoError(t, <-first)
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, repeated.Fired())
		s, err := bs[0].Status(b.Context())
		require.NoError(t, err)
		require.True(t, s.Open)
		require.EqualValues(t, 2, s.Round)
		for _, l := range []<-chan error{leaving(b.Context(), next[0]), leaving(b.Context(), next[1])} {
			require.NoError(t, <-l)
		}
		b.Close(cs...)
	})
}

// The connection is lost with the answer to the mark of the last to finish, and
// so is the watch on ready; then the first closes the round.
func TestALeaverThatLearnsOfItsMarkAfterTheEndLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		mark := b.Server.Inject(zkembed.Match{
			Session: cs[1].SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: members[1].Node(), Times: 1,
		}, zkembed.LoseReply())
		second := leaving(b.Context(), members[1])
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(t, 1, mark.Fired())
		require.Empty(t, b.Server.Watched())
		b.Close(cs...)
	})
}

// The connection is lost while both are inside, and the watch on ready is set
// again so slowly that the round could be over by then.
func TestALeaverWatchesReadyBeforeTheRoundCanEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		require.NoError(t, b.Server.DropConn(cs[1].SessionID()))
		time.Sleep(lasts)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		watch := b.Server.Inject(zkembed.Match{
			Session: cs[1].SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b/ready", Skip: 1, Times: 1,
		}, zkembed.Delay(lasts))
		require.NoError(t, members[1].Leave(b.Context()))
		require.NoError(t, <-first)
		require.Equal(t, 1, watch.Fired())
		require.Empty(t, b.Server.Watched())
		b.Close(cs...)
	})
}

// Its session is over, and the others have left without it, before it hears of
// that.
func TestAMemberThatHearsOfItsLossAfterTheEndLeavesNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		first := leaving(b.Context(), members[0])
		time.Sleep(lasts)
		b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		require.NoError(t, b.Server.DropConn(cs[1].SessionID()))
		require.NoError(t, b.Server.ExpireSession(cs[1].SessionID()))
		time.Sleep(lasts)
		require.NoError(t, members[1].Err())
		late := leaving(b.Context(), members[1])
		time.Sleep(time.Millisecond)
		b.Server.Heal()
		requireMissing(t, <-first, 1)
		require.ErrorIs(t, <-late, coord.ErrLost)
		require.Empty(t, b.Server.Watched())
		b.Close(cs...)
	})
}

// A member that cannot reach the servers has lost its place when they may have
// expired its session, during any call.
func TestLeaveEndsWithTheMembershipWhenNoServerCanBeReached(t *testing.T) {
	for name, early := range map[string]bool{"called before": true, "called since": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				cs, bs := b.pool(2, 2)
				members := b.inside(b.enter(bs...)...)
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
				b.Close(cs...)
			})
		})
	}
}

// The context is the member's own, and so ends with it: here when the client
// hears that its session is over, while Leave waits for a connection.
func TestLeaveReportsALossAlsoWhenItsContextEndsWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		require.NoError(t, b.Server.DropConn(cs[1].SessionID()))
		require.NoError(t, b.Server.ExpireSession(cs[1].SessionID()))
		time.Sleep(lasts)
		left := leaving(members[1].Context(b.Context()), members[1])
		time.Sleep(time.Millisecond)
		b.Server.Heal()
		require.ErrorIs(t, <-left, coord.ErrLost)
		b.Close(cs...)
	})
}

func TestLeaveReportsALossThatCameBeforeTheContextsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		require.NoError(t, inspect.Break(b.Context(), cs[0], members[1].Node()))
		require.NoError(t, b.Server.DropConn(cs[1].SessionID())) // has ready looked at
		<-members[1].Done()
		time.Sleep(lasts)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.ErrorIs(t, members[1].Leave(ctx), coord.ErrLost)
		requireMissing(t, members[0].Leave(b.Context()), 1)
		b.Close(cs...)
	})
}

// It was cut off, the round ended without it, and the barrier was removed.
func TestAMemberThatLostItsPlaceGetsAnErrorAlsoWhenTheBarrierIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		members := b.inside(b.enter(bs...)...)
		late := leaving(b.Context(), members[1])
		time.Sleep(lasts)
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[1].SessionID()}})
		require.NoError(t, b.Server.ExpireSession(cs[1].SessionID()))
		requireMissing(t, members[0].Leave(b.Context()), 1)
		require.NoError(t, bs[0].Remove(b.Context()))
		cut.Heal()
		err := <-late
		require.ErrorIs(t, err, coord.ErrLost)
		require.NotErrorIs(t, err, doublebarrier.ErrBroken)
		b.Close(cs...)
	})
}

func TestMain(m *testing.M) { zktest.Main(m) }

// steady is a session time-out that a busy machine can keep. Where a session
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

// outcome is what a call in the background came to.
type outcome[T any] struct {
	value T
	err   error
}

// entering calls Enter in the background.
func entering(ctx context.Context, b *doublebarrier.Barrier) <-chan outcome[*doublebarrier.Member] {
	return coordtest.Go(func() outcome[*doublebarrier.Member] {
		m, err := b.Enter(ctx)
		return outcome[*doublebarrier.Member]{m, err}
	})
}

// leaving calls Leave in the background.
func leaving(ctx context.Context, m *doublebarrier.Member) <-chan error {
	return coordtest.Go(func() error { return m.Leave(ctx) })
}

func entered(t testing.TB, entering <-chan outcome[*doublebarrier.Member]) *doublebarrier.Member {
	t.Helper()
	o := zktest.Receive(t, coordtest.Soon, entering, "a member enters")
	require.NoError(t, o.err)
	return o.value
}

// round lets all the barriers' members enter together and returns them by
// index.
func round(t testing.TB, barriers ...*doublebarrier.Barrier) []*doublebarrier.Member {
	t.Helper()
	var all []<-chan outcome[*doublebarrier.Member]
	for _, b := range barriers {
		all = append(all, entering(t.Context(), b))
	}
	members := make([]*doublebarrier.Member, len(all))
	for _, e := range all {
		m := entered(t, e)
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
	var told []error
	for _, l := range all {
		told = append(told, zktest.Receive(t, coordtest.Soon, l, "a member leaves"))
	}
	return told
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
func pending[T any](t testing.TB, c <-chan T, what string) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%s: %v", what, v)
	default:
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
