package coord_test

import (
	"context"
	"path"
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

// joining makes a claim that holds immediately, or one that may have to wait.
type joining func(context.Context, *coord.Client) (*coord.Hold, error)

func inLine(spec coord.Spec) joining {
	return func(ctx context.Context, c *coord.Client) (*coord.Hold, error) {
		h, _, err := recipe.Join(ctx, c, &spec)
		return h, err
	}
}

func ofName(path string) joining {
	return func(ctx context.Context, c *coord.Client) (*coord.Hold, error) {
		return recipe.AcquireName(ctx, c, coord.NameSpec{Path: path})
	}
}

// joinings are the ways to make a claim of which the server is asked no more
// before it holds.
var joinings = map[string]joining{
	"in line": func(ctx context.Context, c *coord.Client) (*coord.Hold, error) {
		return recipe.Acquire(ctx, c, &mutex, first)
	},
	"unlisted": inLine(coord.Spec{Line: mutex.Line, Kind: "lock", Unlisted: true}),
	"a name":   ofName("/lock/one"),
}

// broken is a claim whose node is broken before it holds.
type broken struct {
	czxid  int64
	beside *coord.Hold // another client's
}

// breakBeside breaks the node of a client that claims, and has another one hold
// the lock.
func (b bubble) breakBeside(c, other *coord.Client) broken {
	b.Helper()
	node := b.node(b.nodesOf(c.Info().SessionID)[0])
	require.NoError(b, inspect.Break(b.Context(), other, node.Path))
	return broken{node.Stat.Czxid, b.acquire(other)}
}

// joinsAgain checks that the claim has not held, and that the call makes
// another one.
func (b bubble) joinsAgain(name string, acquired <-chan outcome, one broken) {
	b.Helper()
	if name == "in line" {
		time.Sleep(time.Second)
		require.Empty(b, acquired, "two holders")
		require.NoError(b, one.beside.Release(b.Context()))
	}
	node := b.node(b.granted(acquired).Node())
	require.NotNil(b, node, "it holds a node that is gone")
	require.Greater(b, node.Stat.Czxid, one.czxid)
}

// A node that the join has seen is no reason to grant later.
func TestF53AClaimWhoseNodeWasBrokenSinceTheJoinHasNoTurn(t *testing.T) {
	for name, join := range joinings {
		runInBubble(t, name, func(b bubble) {
			var c *coord.Client
			other, claim := b.connected(), make(chan broken, 1)
			require.NoError(b, other.EnsureDir(b.Context(), mutex.Line.Dir))
			c = b.Open(atTheFirst(event.Joined, func() {
				time.Sleep(time.Minute)
				claim <- b.breakBeside(c, other)
				synctest.Wait() // the news has come
			}))
			acquired := b.later(func(ctx context.Context) (*coord.Hold, error) { return join(ctx, c) })
			b.joinsAgain(name, acquired, <-claim)
		})
	}
}

// The news of the deletion does not come, since the claim's own watch is not
// set yet: the grant waits for that.
func TestAClaimThatDoesNotKnowOfItsNodeLooksBeforeItHolds(t *testing.T) {
	for name, join := range joinings {
		runInBubble(t, name, func(b bubble) {
			var c *coord.Client
			var late *zkembed.Fault
			other, claim := b.connected(), make(chan broken, 1)
			require.NoError(b, other.EnsureDir(b.Context(), mutex.Line.Dir))
			c = b.Open(atTheFirst(event.Joined, func() {
				late = b.Server.Inject(zkembed.Match{
					Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: b.nodesOf(c.Info().SessionID)[0], Session: c.Info().SessionID,
					Times: 1,
				}, zkembed.Delay(time.Second))
				time.Sleep(100 * time.Millisecond)
				claim <- b.breakBeside(c, other)
			}))
			acquired := b.later(func(ctx context.Context) (*coord.Hold, error) { return join(ctx, c) })
			b.joinsAgain(name, acquired, <-claim)
			require.Equal(b, 1, late.Fired())
		})
	}
}

// Its node was there when the wait for an open window began, and its own watch
// is not set yet.
func TestAClaimThatWaitsForItsWindowLooksAgainBeforeItHolds(t *testing.T) {
	for name, join := range joinings {
		if name == "a name" {
			continue // its create opens the window
		}
		runInBubble(t, name, func(b bubble) {
			c, other := b.Open(), b.connected()
			require.NoError(b, other.EnsureDir(b.Context(), mutex.Line.Dir))
			elsewhere := mutex
			elsewhere.Line.Dir = "/elsewhere"
			b.stand(other, elsewhere) // keeps its window open
			time.Sleep(2 * T)         // and c's window is closed: c has written nothing
			throttle := func(op zkembed.Op, times int) *zkembed.Fault {
				return b.Server.Inject(
					zkembed.Match{Ops: []zkembed.Op{op}, Session: c.Info().SessionID, Times: times},
					zkembed.ReplyError(zkembed.CodeThrottledOp))
			}
			closed, unwatched := throttle(zkembed.OpMulti, 0), throttle(zkembed.OpGetData, 2)
			acquired := b.later(func(ctx context.Context) (*coord.Hold, error) { return join(ctx, c) })
			<-closed.Struck()
			<-unwatched.Struck()
			claim := b.breakBeside(c, other)
			require.Empty(b, acquired)
			closed.Remove()
			b.joinsAgain(name, acquired, claim)
			require.Equal(b, 2, unwatched.Fired())
		})
	}
}

// A rule that lets later contenders go first, and is asked on listings of
// different age, would grant two at a time. So the rule is never shown later
// contenders, not even beyond the end of the slice: in the join's listing, in a
// later one, and after some have gone.
func TestARuleSeesOnlyThoseAhead(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.connected(), b.Open()
		holder := b.acquire(other)
		asked := make(chan []string, 10)
		seen := func(ahead []coord.Contender) (wait []int, granted bool) {
			var names []string
			for _, contender := range ahead[:cap(ahead)] {
				names = append(names, contender.Name)
			}
			asked <- names
			return first(ahead)
		}
		b.Server.Inject(
			zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, Session: c.Info().SessionID, Times: 1},
			zkembed.Delay(time.Second))
		acquired := b.later(acquirer(c, mutex, seen))
		synctest.Wait()
		later := b.stand(other, mutex)
		require.Equal(t, []string{path.Base(holder.Node())}, <-asked) // as listed by the join
		synctest.Wait()                                               // until it watches the holder
		require.NoError(t, b.Server.DropConn(c.Info().SessionID))
		require.Equal(t, []string{path.Base(holder.Node())}, <-asked) // as listed now
		time.Sleep(time.Second)
		require.NoError(t, holder.Release(b.Context()))
		require.Empty(t, <-asked)
		require.NoError(t, b.granted(acquired).Release(b.Context()))
		require.NoError(t, later.Err())
	})
}

func TestAClaimTellsUnderWhichHoldsItIsMade(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			const around = "_c_0-lock-0000000007"
			c, other := b.Open(coord.WithDialect(dialect), coord.WithHeld(around)), b.Open(coord.WithDialect(dialect))
			at := func(c *coord.Client, ctx context.Context, dir string) *coord.Hold {
				return b.Hold(recipe.Acquire(ctx, c, &coord.Spec{Line: inspect.LockLine(dir), Kind: "lock"}, coord.First))
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
		h := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/name", Data: []byte("mine")}))
		require.Equal(b, "mine", b.data(h.Node()))
		require.NoError(b, h.Release(b.Context()))
		require.ErrorIs(b, coordtest.Err(coord.Open(b.Context(), b.Server.ConnectString(), coord.WithHeld("a/b"))),
			coord.ErrInvalid)
	})
}

func TestAnExclusiveClaimInsideOfASharedHoldOfTheSameLineIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		line := coord.Line{Dir: "/lock", Kinds: []string{"read", "write"}}
		shared := b.stand(c, coord.Spec{Line: line, Kind: "read"})
		for _, reentrant := range []bool{false, true} {
			write := coord.Spec{Line: line, Kind: "write", Exclusive: true, Reentrant: reentrant}
			require.ErrorIs(t, coordtest.Err(recipe.Acquire(shared.Context(b.Context()), c, &write, coord.First)),
				coord.ErrInvalid)
			require.ErrorIs(t, coordtest.Err(recipe.TryAcquire(shared.Context(b.Context()), c, &write, coord.First)),
				coord.ErrInvalid)
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
		require.NoError(b, b.Hold(recipe.Acquire(inside, c, &spec, coord.First)).Release(b.Context()))
		require.NoError(b, b.Hold(recipe.TryAcquire(inside, c, &spec, coord.First)).Release(b.Context()))
		h, _, err := recipe.Join(inside, c, &spec)
		require.NoError(b, b.Hold(h, err).Release(b.Context()))
		require.Equal(b, before, spec)
	})
}
