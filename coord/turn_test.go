package coord_test

import (
	"context"
	"path"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A caller that wants a wait to end may leave the claim from elsewhere.
func TestAWaitForTheTurnOfAClaimThatIsLeftEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, _ := b.holder()
		claim := b.join(c, mutex)
		ended := coordtest.Go(func() error { return coordtest.Err(claim.Turn(b.Context(), first)) })
		synctest.Wait()
		require.NoError(t, claim.Leave(b.Context()))
		require.ErrorIs(t, <-ended, coord.ErrReleased)
	})
}

func TestAClaimThatWasLeftHasNoTurnAndNoPlace(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for i, join := range []joining{
			inLine(mutex),
			inLine(coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member", Unlisted: true}),
			ofName("/names/one"),
		} {
			claim := b.claim(join(b.Context(), c))
			rule := coord.Rule(nil)
			if i == 0 {
				rule = first
				require.NoError(t, coordtest.Err(claim.Turn(b.Context(), first))) // uses the listing of the join up
			}
			require.NoError(t, claim.Leave(b.Context()))
			require.ErrorIs(t, coordtest.Err(claim.Turn(b.Context(), rule)), coord.ErrReleased)
			if i == 0 {
				require.ErrorIs(t, coordtest.Err(claim.Listed(b.Context())), coord.ErrReleased)
			}
		}
	})
}

func TestAnObserverHearsOfTheReleaseOfAHoldWhoseClaimIsLeft(t *testing.T) {
	inBubble(t, func(b bubble) {
		var granted, released atomic.Int32
		c := b.Open(coord.WithObserver(func(e event.Event) {
			switch e.Kind {
			case event.Granted:
				granted.Add(1)
			case event.Ended:
				require.ErrorIs(t, e.Err, coord.ErrReleased)
				released.Add(1)
			}
		}))
		claim := b.join(c, mutex)
		require.NoError(t, coordtest.Err(claim.Turn(b.Context(), first)))
		require.NoError(t, claim.Leave(b.Context()))
		require.EqualValues(t, 1, granted.Load())
		require.EqualValues(t, 1, released.Load())
	})
}

// joining makes a claim.
type joining func(context.Context, *coord.Client) (*coord.Claim, error)

func inLine(spec coord.Spec) joining {
	return func(ctx context.Context, c *coord.Client) (*coord.Claim, error) { return c.JoinLine(ctx, spec) }
}

func ofName(path string) joining {
	return func(ctx context.Context, c *coord.Client) (*coord.Claim, error) {
		return c.JoinName(ctx, coord.NameSpec{Path: path})
	}
}

// joined returns a claim that is first in line, and was listed along with its
// create.
func (b bubble) joined(c *coord.Client, join joining) *coord.Claim {
	b.Helper()
	require.NoError(b, c.EnsureDir(b.Context(), mutex.Line.Dir))
	late := b.Server.Inject(zkembed.Match{Func: creates}, zkembed.Delay(time.Millisecond))
	defer late.Remove()
	return b.claim(join(b.Context(), c))
}

// A node that the join has seen is no reason to grant later.
func TestF53AClaimWhoseNodeWasBrokenSinceTheJoinHasNoTurn(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		claim := b.joined(c, inLine(mutex))
		time.Sleep(time.Minute)
		require.NoError(b, inspect.Break(b.Context(), other, claim.Node()))
		h := b.acquire(other)
		synctest.Wait() // the news has come
		require.ErrorIs(b, coordtest.Err(claim.Turn(b.Context(), first)), coord.ErrNodeDeleted)
		require.NoError(b, h.Err())
	})
}

// The news of the deletion does not come, since the claim's own watch is not
// set yet: the grant waits for that.
func TestAClaimThatDoesNotKnowOfItsNodeLooksBeforeItHolds(t *testing.T) {
	for i, join := range []joining{
		inLine(mutex),
		inLine(coord.Spec{Line: mutex.Line, Kind: "lock", Unlisted: true}),
		ofName(mutex.Line.Dir + "/one"),
	} {
		inBubble(t, func(b bubble) {
			c, other := b.Open(), b.Open()
			claim := b.joined(c, join)
			late := b.Server.Inject(zkembed.Match{
				Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: claim.Node(), Session: c.Info().SessionID, Times: 1,
			}, zkembed.Delay(time.Second))
			time.Sleep(100 * time.Millisecond)
			require.NoError(b, inspect.Break(b.Context(), other, claim.Node()))
			h := b.acquire(other)
			rule := coord.Rule(nil)
			if i == 0 {
				rule = first
			}
			require.ErrorIs(b, coordtest.Err(claim.Turn(b.Context(), rule)), coord.ErrNodeDeleted)
			require.Equal(b, 1, late.Fired())
			require.NoError(b, h.Err())
		})
	}
}

// Its node was there when the wait for an open window began, and its own watch
// is not set yet.
func TestAClaimThatWaitsForItsWindowLooksAgainBeforeItHolds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		elsewhere := mutex
		elsewhere.Line.Dir = "/elsewhere"
		b.join(other, elsewhere) // keeps its window open
		time.Sleep(2 * T)        // and c's window is closed: c has written nothing
		throttle := func(op zkembed.Op, times int) *zkembed.Fault {
			return b.Server.Inject(
				zkembed.Match{Ops: []zkembed.Op{op}, Session: c.Info().SessionID, Times: times},
				zkembed.ReplyError(zkembed.CodeThrottledOp))
		}
		closed, unwatched := throttle(zkembed.OpMulti, 0), throttle(zkembed.OpGetData, 2)
		claim := b.join(c, mutex)
		granted := coordtest.Go(func() error { return coordtest.Err(claim.Turn(b.Context(), first)) })
		<-closed.Struck()
		<-unwatched.Struck()
		require.NoError(b, inspect.Break(b.Context(), other, claim.Node()))
		h := b.acquire(other)
		require.Empty(b, granted)
		closed.Remove()
		require.ErrorIs(b, <-granted, coord.ErrNodeDeleted)
		require.Equal(b, 2, unwatched.Fired())
		require.NoError(b, h.Err())
	})
}

// Its own watch costs a claim that lasts one request, whenever it has its turn.
func TestAClaimThatWasJoinedEarlierLooksOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), mutex.Line.Dir))
		counts := b.asked(c, func() {
			claim := b.joined(c, inLine(mutex))
			time.Sleep(time.Second)
			b.hold(claim.Turn(b.Context(), first))
			time.Sleep(time.Second)
		})
		once := zkembed.Counts{zkembed.OpCreate: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1, zkembed.OpExists: 1}
		require.Equal(b, once, counts)
	})
}

// A rule that lets later contenders go first, and is asked on listings of
// different age, would grant two at a time. So the rule is never shown later
// contenders, not even beyond the end of the slice: in the join's listing, in a
// later one, and after some have gone.
func TestARuleSeesOnlyThoseAhead(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		holder, claim, later := b.join(c, mutex), b.join(c, mutex), b.join(c, mutex)
		require.NoError(t, coordtest.Err(later.Listed(b.Context())))

		asked := make(chan []string, 10)
		seen := func(ahead []coord.Contender) (wait []int, granted bool) {
			var names []string
			for _, contender := range ahead[:cap(ahead)] {
				names = append(names, contender.Name)
			}
			asked <- names
			return first(ahead)
		}
		turn := func(ctx context.Context) <-chan error {
			return coordtest.Go(func() error { return coordtest.Err(claim.Turn(ctx, seen)) })
		}
		waiting, cancel := context.WithCancel(b.Context())
		ended := turn(waiting)
		require.Equal(t, []string{path.Base(holder.Node())}, <-asked) // as listed by the join
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		ended = turn(b.Context())
		require.Equal(t, []string{path.Base(holder.Node())}, <-asked) // as listed now
		synctest.Wait()
		require.NoError(t, holder.Leave(b.Context()))
		require.Empty(t, <-asked)
		require.NoError(t, <-ended)
		require.NoError(t, claim.Leave(b.Context()))
		require.NoError(t, later.Leave(b.Context()))
	})
}

func TestAClaimTellsUnderWhichHoldsItIsMade(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			const around = "_c_0-lock-0000000007"
			c, other := b.Open(coord.WithDialect(dialect), coord.WithHeld(around)), b.Open(coord.WithDialect(dialect))
			at := func(c *coord.Client, ctx context.Context, dir string) *coord.Hold {
				return b.hold(recipe.Acquire(ctx, c, &coord.Spec{Line: inspect.LockLine(dir), Kind: "lock"}, coord.First))
			}
			under := func(dir string) []string {
				all := b.contenders(other, dir)
				require.Len(b, all, 1)
				require.Contains(b, []string{c.Info().Identity, other.Info().Identity}, all[0].Owner)
				return all[0].Under
			}
			outer := at(other, b.Context(), "/outer")
			require.Empty(b, under("/outer"))
			ctx := outer.Context(outer.Context(b.Context()))
			middle := at(c, ctx, "/middle")
			require.Equal(b, []string{around, path.Base(outer.Node())}, under("/middle"), "also one of another client")
			inner := at(other, middle.Context(ctx), "/inner")
			want := []string{path.Base(outer.Node()), path.Base(middle.Node())}
			require.Equal(b, want, under("/inner"))
			require.NoError(b, inspect.Revoke(b.Context(), other, inner.Node()))
			require.Equal(b, want, under("/inner"), "a request leaves it to see")
		})
	}
}

func TestDataOfOnesOwnAreNotAddedTo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithHeld("_c_0-lock-0000000007"))
		h := b.hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/name", Data: []byte("mine")}))
		require.Equal(b, "mine", b.data(h.Node()))
		require.NoError(b, h.Release(b.Context()))
		require.ErrorIs(b, coordtest.Err(coord.Open(b.Context(), b.Server.ConnectString(), coord.WithHeld("a/b"))), coord.ErrInvalid)
	})
}

func TestAnExclusiveClaimInsideOfASharedHoldOfTheSameLineIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		line := coord.Line{Dir: "/lock", Kinds: []string{"read", "write"}}
		shared := b.stand(c, coord.Spec{Line: line, Kind: "read"})
		for _, reentrant := range []bool{false, true} {
			write := coord.Spec{Line: line, Kind: "write", Exclusive: true, Reentrant: reentrant}
			require.ErrorIs(t, coordtest.Err(recipe.Acquire(shared.Context(b.Context()), c, &write, coord.First)), coord.ErrInvalid)
			require.ErrorIs(t, coordtest.Err(recipe.TryAcquire(shared.Context(b.Context()), c, &write, coord.First)), coord.ErrInvalid)
		}
	})
}

func TestAnUnlistedClaimHoldsAtOnceForOneRequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member", Unlisted: true}
		b.stand(c, spec)
		require.Equal(t, zkembed.Counts{zkembed.OpCreate: 1}, b.asked(c, func() { b.stand(c, spec) }))
		require.Equal(t, 2, b.children("/group"))
	})
}

func TestAnUnlistedClaimIsRefusedNearTheEndOfTheSequenceNumbers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/group"))
		require.NoError(t, b.Server.SetSequence("/group", 2147483600))
		_, _, err := recipe.Join(b.Context(), c, &coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"})
		require.ErrorIs(t, err, coord.ErrSequenceExhausted)
		time.Sleep(time.Second)
		require.Zero(t, b.owned(c.Info().SessionID))
	})
}

func TestWhoStandsInALineKnowsAllWhoCameBefore(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"}
		first := b.stand(other, spec)
		lost := b.Server.Inject(
			zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, Session: c.Info().SessionID, Times: 1}, zkembed.LoseReply())
		second, names, err := recipe.Join(b.Context(), c, &spec)
		require.NoError(b, err)
		require.Equal(b, 1, lost.Fired())
		require.ElementsMatch(b, []string{path.Base(first.Node()), path.Base(second.Node())}, names)
	})
}

func TestARuleThatPanicsLeavesNothingAmongThoseThatShareListings(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.connected()
		h := b.acquire(b.Open())
		panics := false
		rule := func(ahead []coord.Contender) ([]int, bool) {
			if panics {
				panic("of the rule")
			}
			return first(ahead)
		}
		caught := make(chan any, 4)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		for range cap(caught) {
			go func() {
				defer func() { caught <- recover() }()
				_, _ = recipe.Acquire(ctx, c, &mutex, rule)
			}()
			time.Sleep(time.Second)
		}
		require.Len(b, c.Sharers(mutex.Line.Dir, cap(caught)), cap(caught))
		panics = true
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, "of the rule", <-caught)
		synctest.Wait()
		require.Empty(b, c.Sharers(mutex.Line.Dir, cap(caught)))
	})
}

// A recipe has one spec, and calls of many goroutines use it at a time.
func TestASpecIsLeftAsItIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/spec"}, Kind: "lock", Exclusive: true}
		before := spec
		inside := b.acquire(c).Context(b.Context())
		require.NoError(b, b.hold(recipe.Acquire(inside, c, &spec, coord.First)).Release(b.Context()))
		require.NoError(b, b.hold(recipe.TryAcquire(inside, c, &spec, coord.First)).Release(b.Context()))
		h, _, err := recipe.Join(inside, c, &spec)
		require.NoError(b, b.hold(h, err).Release(b.Context()))
		require.Equal(b, before, spec)
	})
}
