package coord_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// look looks at a node once, and leaves a watch.
func look(b bubble, c *coord.Client, path string) error {
	return c.Wait(b.Context(), func(v *coord.View) (bool, error) {
		_, _, err := v.Get(path)
		return true, err
	})
}

// All that watch a path share one watch, also a failing one: its "no node" may
// be older than the node.
func TestAWatchSeesWhatTheSameClientHasCreated(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		var watching sync.WaitGroup
		b.Cleanup(watching.Wait)
		for range 8 {
			watching.Go(func() {
				for b.Context().Err() == nil {
					_ = c.Wait(b.Context(), func(v *coord.View) (bool, error) {
						_, _, err := v.Get("/x")
						return false, err
					})
				}
			})
		}
		for range 2000 {
			require.NoError(b, c.Create(b.Context(), "/x", nil))
			require.NoError(b, look(b, c, "/x"))
			require.NoError(b, c.Delete(b.Context(), "/x", -1))
		}
	})
}

// Callers share a watch, but not the memory of what it read.
func TestWhatAWatchReadIsEachCallersOwn(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/x", []byte("data")))
		require.NoError(b, c.Create(b.Context(), "/x/child", nil))
		for range 2 {
			require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (bool, error) {
				data, _, err := v.Get("/x")
				require.NoError(b, err)
				require.Equal(b, "data", string(data))
				data[0] = 0
				names, _, err := v.Children("/x")
				require.NoError(b, err)
				require.Equal(b, []string{"child"}, names)
				names[0] = ""
				return true, nil
			}))
		}
	})
}

// Waiters for one node ask about it together, also when it is gone.
func TestTheEndOfANodeThatManyWatchIsAskedForOnlyOnceOrTwice(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		require.NoError(b, admin.Create(b.Context(), "/x", nil))
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(2*time.Millisecond))
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				looked := false
				require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (changed bool, err error) {
					if !looked {
						_, _, err = v.Get("/x")
					}
					changed, looked = looked, true
					return changed, err
				}))
				require.ErrorIs(b, look(b, c, "/x"), coord.ErrNoNode)
			})
		}
		time.Sleep(time.Second)
		before := b.Server.Counts()
		require.NoError(b, admin.Delete(b.Context(), "/x", -1))
		waiting.Wait()
		require.LessOrEqual(b, b.Server.Counts().Since(before)[zkembed.OpGetData], 2)
	})
}

func TestAServerThatStumblesOverTheOwnWatchDoesNotHideALoss(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.acquire(c)
		stumble := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, Session: c.Info().SessionID, Times: 1},
			zkembed.ReplyError(zkembed.CodeSystemError))
		time.Sleep(T)
		require.Equal(b, 1, stumble.Fired())
		require.NoError(b, inspect.Break(b.Context(), admin, h.Node()))
		time.Sleep(time.Second)
		require.ErrorIs(b, h.Err(), coord.ErrNodeDeleted)
	})
}

func TestAServerThatStumblesOverTheDeletionDoesNotStrandTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		h := b.acquire(c)
		stumble := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1},
			zkembed.ReplyError(zkembed.CodeSystemError))
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, 1, stumble.Fired())
		require.NoError(b, b.acquire(other).Release(b.Context()))
	})
}

// The servers' least session timeout is a setting: a tick may be as long as a
// session, and is believed.
func TestALongTickIsBelievedAsLongAsItLeavesAWindow(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, shortest := b.acquire(b.Open(coord.WithTick(T))), T
		for range 500 {
			time.Sleep(T / 100)
			require.NoError(b, h.Err())
			shortest = min(shortest, time.Until(h.Deadline()))
		}
		require.Less(b, shortest, T/4, "half a tick is not allowed for")
		require.NoError(b, h.Release(b.Context()))
		_, err := coord.Open(b.Context(), b.Server.ConnectString(), coord.WithSessionTimeout(T), coord.WithTick(2*T))
		require.ErrorIs(b, err, coord.ErrInvalid)
	})
}

func TestANamedClaimThatIsAskedForWhileItsCreateIsFoundOutIsStillItsOwn(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/d"))
		lost := b.Server.Inject(zkembed.Match{Func: creates, Session: c.Info().SessionID, Times: 1}, zkembed.LoseReply())
		late := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, Session: c.Info().SessionID, Times: 1},
			zkembed.Delay(time.Second))
		acquired := b.later(func(ctx context.Context) (*coord.Hold, error) {
			return recipe.AcquireName(ctx, c, coord.NameSpec{Path: "/d/n"})
		})
		for b.owned(c.Info().SessionID) == 0 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, inspect.Revoke(b.Context(), admin, "/d/n"))
		h := b.granted(acquired)
		require.Equal(b, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		<-h.Revoked()
		require.NoError(b, h.Release(b.Context()))
		require.Zero(b, b.owned(c.Info().SessionID))
	})
}

// The index of a refused operation is counted as the caller counts.
func TestATransactionsErrorNamesOnlyOperationsOfTheCaller(t *testing.T) {
	inBubble(t, func(b bubble) {
		undeletable := coord.WithACL("world:anyone:cr")
		c := b.Open(undeletable)
		var refused *coord.TxnError
		h, err := recipe.Acquire(b.Context(), c, &mutex, first)
		require.NoError(b, err)
		err = b.release(b.Context(), c, h, coord.CheckOp("/", -1))
		require.ErrorIs(b, err, coord.ErrNoAuth)
		require.NotErrorAs(b, err, &refused)

		_, err = b.once(c).Txn(b.Context(), coord.CheckOp("/", -1))
		require.ErrorIs(b, err, coord.ErrNoAuth)
		require.NotErrorAs(b, err, &refused)

		c = b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/d"))
		with := []coord.Op{coord.CheckOp("/d", -1), coord.CheckOp("/missing", -1)}
		require.ErrorAs(b,
			coordtest.Err(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/d/n", With: with})), &refused)
		require.Equal(b, 1, refused.Index)
	})
}

func TestAContextsErrorStaysVisibleBesideItsCause(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, shutdown := b.Open(), errors.New("shutting down")
		b.acquire(c)
		ctx, cancel := context.WithCancelCause(b.Context())
		time.AfterFunc(time.Second, func() { cancel(shutdown) })
		_, err := recipe.Acquire(ctx, c, &mutex, coord.First)
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorIs(b, err, shutdown)
	})
}

func TestNothingIsAskedOfTheServerForAContextThatHasEnded(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/lock"))
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		before := b.Server.Counts()
		for range 50 {
			require.ErrorIs(b, coordtest.Err(recipe.Acquire(ctx, c, &mutex, coord.First)), context.Canceled)
		}
		time.Sleep(time.Second) // what was sent has arrived
		require.Zero(b, b.Server.Counts().Since(before)[zkembed.OpCreate])
	})
}

// A line that names no kinds is one of all kinds, of one dialect.
func TestInALineWithoutKindsEveryKindTakesPart(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other, kazoo := b.Open(), b.Open(), b.Open(coord.WithDialect(coord.Kazoo))
		line := coord.Line{Dir: "/line"}
		for _, kinds := range [][2]string{{"lock", "write"}, {"one", "lock"}, {"lock", "two"}, {"one", "two"}} {
			wanted := coord.Spec{Line: line, Kind: kinds[1]}
			h := b.Hold(recipe.Acquire(b.Context(), c, &coord.Spec{Line: line, Kind: kinds[0]}, coord.First))
			require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), other, &wanted, coord.First)), coord.ErrBusy)
			require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), kazoo, &wanted, coord.First)), coord.ErrForeign)
			waiting := b.startAcquire(acquirer(other, wanted, coord.First))
			require.Empty(b, waiting)
			require.NoError(b, h.Release(b.Context()))
			require.NoError(b, b.granted(waiting).Release(b.Context()))
		}
	})
}

// A directory may have lines that have nothing to do with each other.
func TestAHoldOfAnotherLineOfTheDirectoryIsNotThisOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		name := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/d/a"}))
		inside := name.Context(b.Context())
		held, is := coord.HeldIn(inside, c, "/d/a")
		require.True(b, is)
		require.Same(b, name, held)
		h, err := recipe.Acquire(inside, c,
			&coord.Spec{Line: coord.Line{Dir: "/d"}, Kind: "lock", Exclusive: true, Reentrant: true}, coord.First)
		require.NoError(b, err, "a line that has nothing to do with the name")
		require.NotEqual(b, name.Node(), h.Node())
		require.NoError(b, h.Release(b.Context()))
		require.NoError(b, name.Release(b.Context()))

		shared := b.stand(c, coord.Spec{Line: coord.Line{Dir: "/e", Kinds: []string{"other"}}, Kind: "shared"})
		foreign := coord.Spec{Line: coord.Line{Dir: "/e", Kinds: []string{"foreign"}}, Kind: "foreign", Exclusive: true}
		require.NotErrorIs(b, coordtest.Err(recipe.TryAcquire(shared.Context(b.Context()), c, &foreign, coord.First)),
			coord.ErrInvalid)
	})
}

func TestAReleaseThatTheServerStumblesOverSaysSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, stranded := b.hearing(event.NodeStranded)
		h := b.acquire(c)
		stumble := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}},
			zkembed.ReplyError(zkembed.CodeSystemError))
		err := h.Release(b.Context())
		require.ErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorContains(b, err, "-1")
		require.Len(b, stranded, 1)
		stumble.Remove()
		time.Sleep(time.Second)
		require.Zero(b, b.owned(c.Info().SessionID))
	})
}

// Inside of a hold, too.
func TestAReentrantAcquireWithAContextThatHasEndedFails(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, reentrant := b.Open(), mutex
		reentrant.Reentrant = true
		ctx, cancel := context.WithCancel(b.Context())
		h := b.Hold(recipe.Acquire(ctx, c, &reentrant, coord.First))
		inside := h.Context(ctx)
		nested := b.Hold(recipe.Acquire(inside, c, &reentrant, coord.First))
		require.NoError(b, nested.Release(b.Context()))
		cancel()
		require.ErrorIs(b, coordtest.Err(recipe.Acquire(inside, c, &reentrant, coord.First)), context.Canceled)
	})
}

func TestAnEndpointThatGrantsASessionNoTimeIsNotTalkedTo(t *testing.T) {
	inBubble(t, func(b bubble) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				length := make([]byte, 4)
				_, _ = io.ReadFull(far, length)
				_, _ = io.CopyN(io.Discard, far, int64(binary.BigEndian.Uint32(length)))
				reply := make([]byte, 4+36) // length, version, timeout, session, password
				binary.BigEndian.PutUint32(reply, 36)
				binary.BigEndian.PutUint64(reply[12:], 7)
				binary.BigEndian.PutUint32(reply[20:], 16)
				_, _ = far.Write(reply)
				_, _ = io.Copy(io.Discard, far)
			}()
			return near, nil
		}
		_, err := coord.Open(b.Within(time.Second), "host:2181", coord.WithDialer(dial))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorIs(b, err, coord.ErrDisconnected)
		require.ErrorContains(b, err, "does not open a session")
		time.Sleep(T) // the client closes in the background
	})
}

func TestAForeignContenderAtTheRootIsNamed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, heard := b.hearing(event.Foreign)
		const foreign = "/0123456789abcdef0123456789abcdef__lock__0000001000"
		require.NoError(b, c.Create(b.Context(), foreign, nil))
		b.acquire(c, coord.Spec{Line: coord.Line{Dir: "/", Kinds: []string{"lock"}}, Kind: "lock", Exclusive: true})
		require.Equal(b, foreign, (<-heard).Path)
	})
}

// Acquire inside of a shared hold, which can go wrong only by a writer that
// waits between the two.
func TestAWriterThatHasGoneIsNotWaitedForInsideOfASharedHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		line := coord.Line{Dir: "/rw", Kinds: []string{"read", "write"}}
		read := coord.Spec{Line: line, Kind: "read"}
		behindWriters := func(ahead []coord.Contender) (wait []int, granted bool) {
			for i, c := range ahead {
				if c.Kind == "write" {
					wait = append(wait, i)
				}
			}
			return wait, len(wait) == 0
		}
		outer := b.Hold(recipe.Acquire(b.Context(), c, &read, behindWriters))
		b.Server.AddFollower(time.Second, c.Info().SessionID)
		time.Sleep(time.Second)
		writing, leave := context.WithTimeout(b.Context(), 300*time.Millisecond)
		defer leave()
		require.Error(b,
			coordtest.Err(recipe.Acquire(writing, other, &coord.Spec{Line: line, Kind: "write", Exclusive: true}, coord.First)))
		time.Sleep(850 * time.Millisecond) // the follower has the writer's node, and not its end
		b.Hold(recipe.Acquire(outer.Context(b.Context()), c, &read, behindWriters))
	})
}
