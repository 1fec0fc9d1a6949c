package coord_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// in is a mutex's claim in a line of the dialect.
func in(d coord.Dialect) coord.Spec {
	spec := strict
	spec.Line.Dialect = d
	return spec
}

// anonymous is a line in which nothing but its owner says whose a node is.
var anonymous = in(coordtest.Described["n_"])

// eachRecovery runs f with a line whose nodes are recovered by their GUIDs when
// a reply is lost, and with one whose nodes are recovered by their owner.
func eachRecovery(t *testing.T, f func(b bubble, spec coord.Spec)) {
	t.Helper()
	for by, spec := range map[string]coord.Spec{"GUID": mutex, "owner": anonymous} {
		runInBubble(t, "recovery="+by, func(b bubble) { f(b, spec) })
	}
}

func inDescribed(t *testing.T, f func(b bubble, begins string, spec coord.Spec)) {
	require.Len(t, coordtest.Described, len(coordtest.UnknownRecipes))
	for _, begins := range coordtest.UnknownRecipes {
		runInBubble(t, "name="+begins+"0", func(b bubble) { f(b, begins, in(coordtest.Described[begins])) })
	}
}

func TestF64AContenderOfARecipeThatIsDescribedIsWaitedFor(t *testing.T) {
	inDescribed(t, func(b bubble, begins string, spec coord.Spec) {
		c := b.Open()
		_, remove := b.Unknown(mutex.Line.Dir, begins)
		require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), c, &spec, first)), coord.ErrBusy)
		waiting := b.wait(c, spec)
		time.Sleep(T)
		require.Empty(b, waiting)
		after, _ := b.Unknown(mutex.Line.Dir, begins)
		remove()
		h := b.granted(waiting)
		require.Less(b, h.Node()[len(h.Node())-10:], after[len(after)-10:], "it came before")
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestClaimsOfADescribedLineExcludeEachOther(t *testing.T) {
	inDescribed(t, func(b bubble, begins string, spec coord.Spec) {
		c := b.Open()
		h := b.acquire(c, spec)
		same, other := b.wait(c, spec), b.wait(b.Open(), spec)
		require.Empty(b, same)
		require.Empty(b, other)
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, b.granted(same).Release(b.Context()))
		require.NoError(b, b.granted(other).Release(b.Context()))
	})
}

func TestAContenderThatIsNotDescribedIsRefusedHonouredOrIgnored(t *testing.T) {
	for others, is := range map[coord.Description]error{
		{Prefix: "n_"}: coord.ErrForeign, {Prefix: "n_", Others: coord.HonourOthers}: coord.ErrBusy,
		{Prefix: "n_", Others: coord.IgnoreOthers}: nil,
	} {
		for _, begins := range []string{
			"lock-", "", "0123456789abcdef0123456789abcdef__lock__", "_c_0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a-lock-",
		} {
			runInBubble(t, string(others.Dialect())+begins, func(b bubble) {
				_, _ = b.Unknown(mutex.Line.Dir, begins)
				_, _ = b.Unknown(mutex.Line.Dir, "holder")
				require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), b.Open(), ptr(in(others.Dialect())), first)), is)
			})
		}
	}
}

func TestADescribedLineIsForExclusiveClaims(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, shared, any := b.Open(), anonymous, anonymous
		shared.Exclusive, any.Line.AnyDialect = false, true
		for _, spec := range []coord.Spec{
			shared, any, in("n_"), in(coord.Description{Prefix: "{who}"}.Dialect()),
			in(coord.Description{Prefix: "a/b"}.Dialect()),
		} {
			require.ErrorIs(b, coordtest.Err(recipe.Acquire(b.Context(), c, &spec, first)), coord.ErrInvalid)
			require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), c, &spec, first)), coord.ErrInvalid)
		}
		_, err := coord.Open(b.Context(), b.Server.ConnectString(), coord.WithDialect(coord.ZooKeeper))
		require.ErrorIs(b, err, coord.ErrInvalid)
		require.ErrorContains(b, err, "mutex")
		_, err = rwlock.Downgrade(b.Context(), b.acquire(c, anonymous))
		require.ErrorIs(b, err, coord.ErrInvalid)
	})
}

func TestSeveralDescribedLinesShareADirectory(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		outer := b.acquire(c, in(coord.Named("a")))
		reentrant := in(coord.Named("b"))
		reentrant.Reentrant = true
		inside := outer.Context(b.Context())
		h, err := recipe.Acquire(inside, c, &reentrant, first)
		require.NoError(b, err)
		require.NotEqual(b, outer.Node(), h.Node(), "another lock, not another handle")
		again, err := recipe.Acquire(h.Context(inside), c, &reentrant, first)
		require.NoError(b, err)
		require.Equal(b, h.Node(), again.Node())
		require.ErrorIs(b, coordtest.Err(recipe.Acquire(h.Context(inside), c, ptr(in(coord.Named("a"))), first)),
			coord.ErrInvalid, "it would wait for itself")
	})
}

// As many as ask are granted, and each has the only node that is its own.
func TestALostReplyToACreateIsMadeUpForWithoutAGUID(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop(), zkembed.CarryOutLate(T / 4)} {
		inBubble(t, func(b bubble) {
			const n = 5
			c, other := b.Open(), b.Open()
			theirs := b.acquire(other, anonymous)
			struck := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: creates, Times: n}, fault)
			var waiting []<-chan outcome
			for range n {
				waiting = append(waiting, b.later(acquirer(c, anonymous, first)))
			}
			time.Sleep(2 * T)
			require.Equal(b, n, struck.Fired())
			require.Equal(b, n, b.owned(c.Info().SessionID), "neither two for a claim nor one for two")
			require.NoError(b, theirs.Err())
			require.NoError(b, theirs.Release(b.Context()))
			for len(waiting) > 0 {
				time.Sleep(time.Second)
				granted := 0
				for i := len(waiting) - 1; i >= 0; i-- {
					if len(waiting[i]) == 0 {
						continue
					}
					granted++
					h := b.granted(waiting[i])
					waiting = append(waiting[:i], waiting[i+1:]...)
					defer func() { _ = h.Release(b.Context()) }()
					require.NoError(b, h.Release(b.Context()))
					break
				}
				require.Equal(b, 1, granted)
			}
			require.Zero(b, b.owned(c.Info().SessionID))
		})
	}
}

// The node that another claim's create has left is as good as ours; ours, when
// it comes, is one too many.
func TestANodeThatWasMadeLateIsAdoptedOnceAndTheOtherIsRemoved(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, removed := b.straying()
		b.joinedLate(c, inLine(anonymous), T/4)
		next := b.lateCreates(c.Info().SessionID, T, 1)
		h := b.acquire(c, anonymous)
		time.Sleep(3 * T)
		require.Equal(b, 1, next.Fired())
		require.NoError(b, h.Err())
		require.Equal(b, []string{h.Node()}, b.nodesOf(c.Info().SessionID))
		require.NotEmpty(b, removed)
	})
}

// A search for strays takes no node for one that is being made, and a create
// none that the search is about to delete.
func TestTheSearchForStraysAndCreatesTakeTurns(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, _ := b.straying()
		b.joinedLate(c, inLine(anonymous), T/4)
		slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: creates, Times: 20},
			zkembed.DelayReply(T/20))
		var using sync.WaitGroup
		for range 20 {
			using.Go(func() {
				h := b.acquire(c, anonymous)
				require.NoError(b, h.Err())
				require.NoError(b, h.Release(b.Context()))
			})
		}
		using.Wait()
		require.NotZero(b, slow.Fired()) // one may have found the late node instead
		time.Sleep(T)
		require.Zero(b, b.owned(c.Info().SessionID))
	})
}

func TestACreateThatWaitsForAnotherEndsByItsContext(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, _ := b.straying()
		hung := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: creates, Times: 1}, zkembed.DelayReply(T/4))
		one := b.later(acquirer(c, anonymous, first))
		<-hung.Struck()
		ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(b, coordtest.Err(recipe.Acquire(ctx, c, &anonymous, first)), context.DeadlineExceeded)
		require.NoError(b, b.granted(one).Release(b.Context()))
		require.NoError(b, b.acquire(c, anonymous).Release(b.Context()))
	})
}

// After its session the client removes what it has left, and nothing of others
// that has such a name.
func TestAfterALostSessionNodesOfOthersStay(t *testing.T) {
	for _, reply := range []zkembed.Action{zkembed.DelayReply(0), zkembed.Hang()} {
		inBubble(t, func(b bubble) {
			c := b.Open()
			h := b.acquire(b.Open(), anonymous)
			struck := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: creates, Times: 1}, reply)
			waiting := b.wait(c, anonymous)
			time.Sleep(T / 20)
			require.Equal(b, 1, struck.Fired())
			require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
			time.Sleep(2 * T)
			require.NoError(b, h.Err())
			require.Empty(b, waiting)
			require.Equal(b, 1, b.owned(c.Info().SessionID))
			require.NoError(b, h.Release(b.Context()))
			require.NoError(b, b.granted(waiting).Release(b.Context()))
		})
	}
}

// The directory was removed and made again meanwhile, and names begin anew.
func TestADeletionThatIsRepeatedSparesTheNextOwnerOfTheName(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		h := b.acquire(c, anonymous)
		lost := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1},
			zkembed.LoseReply())
		held := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.Delay(T/10))
		h.Abandon()
		<-lost.Struck()
		for b.exists(h.Node()) {
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, other.Delete(b.Context(), mutex.Line.Dir, -1))
		next := b.acquire(other, anonymous)
		require.Equal(b, h.Node(), next.Node())
		time.Sleep(T)
		held.Remove()
		require.NoError(b, next.Err())
		require.NoError(b, next.Release(b.Context()))
	})
}

// What a claim costs does not depend on what its names look like.
func TestADescribedLineCostsNoRequestMore(t *testing.T) {
	cost := func(spec coord.Spec) (all zkembed.Counts) {
		inBubble(t, func(b bubble) {
			c := b.Open()
			require.NoError(b, b.acquire(c, spec).Release(b.Context()))
			all = b.asked(c, func() {
				for range 10 {
					require.NoError(b, b.acquire(c, spec).Release(b.Context()))
				}
				h := b.acquire(b.Open(), spec)
				waiting := b.wait(c, spec)
				time.Sleep(time.Second)
				require.NoError(b, h.Release(b.Context()))
				require.NoError(b, b.granted(waiting).Release(b.Context()))
				synctest.Wait()
			})
		})
		return all
	}
	curators := cost(strict)
	kazoos := cost(in(coord.Kazoo))
	kazoos[zkembed.OpGetChildren2]-- // what has gone may be a writer that left a reader: Kazoo's names do not tell
	require.Equal(t, curators, kazoos)
	for _, d := range coordtest.Described {
		require.Equal(t, curators, cost(in(d)), d)
	}
}

func TestARequestIsObeyedAsTheLineIsDescribed(t *testing.T) {
	inBubble(t, func(b bubble) {
		asks := in(coord.Description{Prefix: "n_", Revoke: "please"}.Dialect())
		c := b.Open()
		for _, spec := range []coord.Spec{anonymous, asks} {
			h := b.acquire(c, spec)
			time.Sleep(T / 10)
			require.Error(b, inspect.Revoke(b.Context(), c, h.Node()), "it is not known how")
			require.NoError(b, coordtest.Err(c.Set(b.Context(), h.Node(), []byte("unlock"), -1)))
			time.Sleep(T / 10)
			require.False(b, closed(h.Revoked()), "which means something else here")
			err := inspect.RevokeIn(b.Context(), c, spec.Line.Dialect, h.Node())
			time.Sleep(T / 10)
			require.Equal(b, spec.Line.Dialect == asks.Line.Dialect, closed(h.Revoked()))
			require.Equal(b, spec.Line.Dialect == asks.Line.Dialect, err == nil)
			require.NoError(b, h.Release(b.Context()))
		}
	})
}

func TestF94AContenderThatIsNotDescribedIsReportedWhileAHoldLasts(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, heard := b.hearing(event.Foreign)
		b.acquire(c, anonymous)
		_, _ = b.Unknown(mutex.Line.Dir, "n_")
		time.Sleep(2 * T)
		require.Empty(b, heard, "it stands in the line")
		node, _ := b.Unknown(mutex.Line.Dir, "lock-")
		time.Sleep(2 * T)
		require.Equal(b, node, (<-heard).Path)
	})
}

func TestARefusalSaysWhichDialectSharesTheLine(t *testing.T) {
	inDescribed(t, func(b bubble, begins string, spec coord.Spec) {
		_, _ = b.Unknown(mutex.Line.Dir, begins)
		err := coordtest.Err(recipe.TryAcquire(b.Context(), b.Open(), &strict, first))
		require.ErrorIs(b, err, coord.ErrForeign)
		_, said, _ := strings.Cut(err.Error(), `of the dialect "`)
		said, _, _ = strings.Cut(said, `"`)
		require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), b.Open(), ptr(in(coord.Dialect(said))), first)),
			coord.ErrBusy, said)
	})
}
