package coord_test

import (
	"context"
	"fmt"
	"net"
	"slices"
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

// creates matches the requests that make a claim's node, alone or in a
// transaction.
func creates(r zkembed.Request) bool {
	return r.Op == zkembed.OpCreate || slices.Contains(r.Parts, zkembed.OpCreate)
}

// lateCreates makes the server carry out the next create of a session late: so
// many attempts, each after its delay.
func (b bubble) lateCreates(session int64, after time.Duration, times int) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Session: session, Func: creates, Times: times}, zkembed.CarryOutLate(after))
}

// joinedLate joins, and gives up while the create is under way, which the
// server carries out so much later.
func (b bubble) joinedLate(c *coord.Client, join joining, after time.Duration) {
	b.Helper()
	late := b.lateCreates(c.Info().SessionID, after, 1)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		<-late.Struck()
		cancel()
	}()
	require.ErrorIs(b, coordtest.Err(join(ctx, c)), context.Canceled)
	require.Equal(b, 1, late.Fired())
}

// straying returns a client, and what it tells of strays. The directory of the
// mutex is there.
func (b bubble) straying() (*coord.Client, <-chan event.Event) {
	b.Helper()
	c, removed := b.hearing(event.StrayRemoved)
	require.NoError(b, b.acquire(c).Release(b.Context()))
	return c, removed
}

func TestANodeThatAServerMakesLateStopsNoOtherClaim(t *testing.T) {
	for times := range 4 {
		eachRecovery(t, func(b bubble, spec coord.Spec) {
			c, removed := b.straying()
			late := b.lateCreates(c.Info().SessionID, T/4, times)
			if times == 0 {
				late.Remove()
			}
			h := b.acquire(c, spec)
			require.Equal(b, times, late.Fired())
			time.Sleep(T) // until the late ones have come and gone
			require.NoError(b, h.Err(), "the hold is not touched")
			require.Equal(b, []string{h.Node()}, b.nodesOf(c.Info().SessionID))
			require.Len(b, removed, times)
			require.NoError(b, h.Release(b.Context()))
			b.acquire(b.Open(), spec)
		})
	}
}

func TestANodeThatAServerMakesAfterItsCallerHasGivenUpIsRemoved(t *testing.T) {
	for _, join := range []joining{inLine(mutex), inLine(anonymous), ofName("/lock/one")} {
		inBubble(t, func(b bubble) {
			c, removed := b.straying()
			other := b.acquire(b.Open(), anonymous)
			b.joinedLate(c, join, T)
			time.Sleep(2 * T)
			require.Zero(b, b.owned(c.Info().SessionID))
			require.Len(b, removed, 1)
			require.NoError(b, other.Err())
		})
	}
}

// The claim was made by a later attempt, and has left: the node of its name is
// not its own any more.
func TestANodeOfANameThatAServerMakesAfterItsClaimHasLeftIsRemoved(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, removed := b.straying()
		late := b.lateCreates(c.Info().SessionID, T/2, 1)
		h := b.name(c, "/lock/one")
		require.Equal(b, 1, late.Fired())
		require.NoError(b, h.Release(b.Context()))
		require.Empty(b, removed, "it is not made yet")
		time.Sleep(T)
		require.Zero(b, b.owned(c.Info().SessionID))
		require.Len(b, removed, 1)
	})
}

// Another client asks for the node before it is found.
func TestANodeOfANameThatAServerMakesLateIsRemovedAlsoWhenItWasAskedFor(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, removed := b.straying()
		b.joinedLate(c, ofName("/lock/one"), T)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}}, zkembed.Delay(tick))
		for b.owned(c.Info().SessionID) == 0 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), "/lock/one"))
		time.Sleep(T)
		require.Zero(b, b.owned(c.Info().SessionID))
		require.Len(b, removed, 1)
	})
}

// name has a client hold a name.
func (b bubble) name(c *coord.Client, path string) *coord.Hold {
	b.Helper()
	return b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: path}))
}

// batches is a connection whose client reads all at once that comes within a
// millisecond.
type batches struct{ net.Conn }

func (c batches) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	for more := 1; err == nil && more > 0 && n < len(p); n += more {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		more, _ = c.Conn.Read(p[n:])
	}
	_ = c.SetReadDeadline(time.Time{})
	return n, err
}

// A search for late nodes may read the node of a claim that leaves meanwhile:
// both replies are there before the search goes on.
func TestASearchForLateNodesSparesTheNextOwnerOfTheName(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := b.Server.DialContext(ctx, network, addr)
			return batches{conn}, err
		})), b.Open()
		require.NoError(b, b.acquire(c).Release(b.Context()))
		lost := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: creates, Times: 1}, zkembed.Drop())
		first := b.name(c, "/lock/one")
		require.Equal(b, 1, lost.Fired())
		require.NoError(b, first.Release(b.Context()))
		second := b.name(c, "/lock/one")
		time.Sleep(T / 10) // until it is watched
		// The first read renews the watch, the second is of the search.
		read := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, Skip: 1, Times: 1,
		}, zkembed.DelayReply(T/10))
		require.NoError(b, b.Server.DropConn(c.Info().SessionID))
		<-read.Struck()
		left := make(chan error, 1)
		go func() { left <- second.Release(b.Context()) }()
		for b.owned(c.Info().SessionID) > 0 {
			time.Sleep(time.Millisecond)
		}
		require.Empty(b, left, "the reply comes with the one to the search")
		next := b.name(other, "/lock/one")
		require.NoError(b, <-left)
		time.Sleep(T)
		require.Equal(b, 1, b.owned(other.Info().SessionID))
		require.NoError(b, next.Release(b.Context()))
	})
}

func TestADowngradeThatIsCarriedOutAfterItsCallerHasGivenUpLeavesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, removed := b.hearing(event.StrayRemoved)
		h := b.acquire(c, coord.Spec{Line: inspect.LockLine("/lock"), Kind: "write", Exclusive: true})
		swap := func(r zkembed.Request) bool { return len(r.Parts) == 3 }
		late := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: swap, Times: 1}, zkembed.CarryOutLate(T/4))
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1},
			zkembed.Delay(T/3))
		ctx, cancel := context.WithCancel(b.Context())
		go func() {
			<-late.Struck()
			cancel()
		}()
		require.ErrorIs(b, coordtest.Err(rwlock.Downgrade(ctx, h)), context.Canceled)
		time.Sleep(2 * T)
		require.Zero(b, b.owned(c.Info().SessionID))
		require.Len(b, removed, 1)
	})
}

func TestEachDirectoryIsSearchedForStraysOnce(t *testing.T) {
	const n = 100
	inBubble(t, func(b bubble) {
		c := b.Open()
		for i := range n {
			require.NoError(b, c.EnsureDir(b.Context(), fmt.Sprint("/d/", i)))
		}
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1},
			zkembed.Hang())
		lists := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren, zkembed.OpGetChildren2},
		}, zkembed.DelayReply(0))
		var joining sync.WaitGroup
		for i := range n {
			joining.Go(func() {
				require.NoError(b,
					coordtest.Err(inLine(coord.Spec{Line: coord.Line{Dir: fmt.Sprint("/d/", i)}, Kind: "lock"})(b.Context(), c)))
			})
		}
		time.Sleep(T / 20)
		require.NoError(b, b.Server.DropConn(c.Info().SessionID))
		joining.Wait()
		time.Sleep(T)
		// To find the node, besides the create, and for strays.
		require.LessOrEqual(b, lists.Fired(), 4*n)
	})
}

// The first attempt cannot be carried out late: the refusal fenced it off.
func TestAReleaseByTransactionWhoseRepeatIsRefusedKeepsTheHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		late := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Times: 1, Func: func(r zkembed.Request) bool { return len(r.Parts) == 3 },
		}, zkembed.CarryOutLate(T/4))
		err := b.once(c).Release(b.Context(), []*coord.Hold{h}, coord.CreateOp("/missing/n", nil))
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		require.Equal(b, 1, late.Fired())
		require.NoError(b, b.Open().EnsureDir(b.Context(), "/missing"))
		time.Sleep(T)
		require.Zero(b, b.children("/missing"))
		require.NoError(b, h.Err())
	})
}

func TestAHoldWhoseNodeIsDeletedByHandIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.acquire(c)
		time.Sleep(time.Second)
		require.NoError(t, inspect.Break(b.Context(), admin, h.Node()))
		synctest.Wait()
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

// A waiter reads its own node soon, or later if it is far from its turn; from
// then on it learns of the deletion immediately.
func TestAWaiterWhoseNodeIsDeletedByHandJoinsAgain(t *testing.T) {
	for _, c := range []struct {
		waits, noticed time.Duration
		before         int // others in the line
	}{
		{0, 20 * time.Millisecond, 1},
		{time.Second, 0, 1},
		{100 * time.Millisecond, 150 * time.Millisecond, 20},
		{time.Second, 0, 20},
	} {
		inBubble(t, func(b bubble) {
			h, admin, waiter := b.acquire(b.Open()), b.Open(), b.Open()
			for range c.before - 1 {
				b.stand(admin, mutex)
			}
			waiting := b.acquireLater(waiter)
			time.Sleep(c.waits)
			before := b.nodesOf(waiter.Info().SessionID)
			require.Len(t, before, 1)
			require.NoError(t, inspect.Break(b.Context(), admin, before[0]))
			time.Sleep(c.noticed)
			synctest.Wait()
			after := b.nodesOf(waiter.Info().SessionID)
			require.Len(t, after, 1, "it stands in the line no more")
			require.NotEqual(t, before, after)
			require.NoError(t, h.Release(b.Context()))
			b.Close(admin) // and the others of the line
			b.granted(waiting)
		})
	}
}

// The waiter does not watch its node yet, and does not hear of the deletion:
// its hold lasts only until it reads the node.
func TestAWaiterThatIsGrantedItsTurnOnADeletedNodeLosesItSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, waiter, admin := b.acquire(b.Open()), b.Open(), b.Open()
		waiting := b.acquireLater(waiter)
		require.NoError(t, inspect.Break(b.Context(), admin, b.nodesOf(waiter.Info().SessionID)[0]))
		require.NoError(t, h.Release(b.Context()))
		next := b.granted(waiting)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, next.Err(), coord.ErrNodeDeleted)
	})
}

func TestAHoldThatWasFarFromItsTurnIsLostWithItsNodeAsSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, others, admin := b.acquire(b.Open()), b.Open(), b.Open()
		for range 20 {
			b.stand(others, mutex)
		}
		waiting := b.acquireLater(b.Open())
		time.Sleep(10 * time.Millisecond)
		b.Close(others)
		require.NoError(t, h.Release(b.Context()))
		next := b.granted(waiting)
		require.NoError(t, inspect.Break(b.Context(), admin, next.Node()))
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, next.Err(), coord.ErrNodeDeleted)
	})
}

func TestTheLastOfThreeWaitsOnWhenTheOneInTheMiddleGoes(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, middle, last := b.Open(), b.Open(), b.Open()
		h := b.acquire(holder)
		ctx, cancel := context.WithCancel(b.Context())
		gone := coordtest.Go(func() error { return coordtest.Err(recipe.Acquire(ctx, middle, &mutex, first)) })
		synctest.Wait()
		waiting := b.acquireLater(last)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		time.Sleep(time.Second)
		require.Empty(t, b.nodesOf(middle.Info().SessionID))
		require.Empty(t, waiting, "two holders")
		require.NoError(t, h.Release(b.Context()))
		b.granted(waiting)
	})
}

func TestAHoldIsLostWithItsSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, h := b.holder()
		require.NoError(t, b.Server.ExpireSession(h.Session()))
		b.acquire(b.Open())
		synctest.Wait()
		require.True(t, ended(h), "two holders")
		require.ErrorIs(t, h.Err(), coord.ErrSessionExpired)
	})
}

func TestAThrottledRevocationIsNotRepeatedWithoutAPause(t *testing.T) {
	for name, ask := range map[string]func(b bubble, c *coord.Client, node string) error{
		"revoke": func(b bubble, c *coord.Client, node string) error { return inspect.Revoke(b.Context(), c, node) },
		"break":  func(b bubble, c *coord.Client, node string) error { return inspect.Break(b.Context(), c, node) },
	} {
		runInBubble(t, name, func(b bubble) {
			c, admin := b.Open(), b.Open()
			h := b.acquire(c)
			refused := b.Server.Inject(zkembed.Match{Session: admin.Info().SessionID, Times: 3},
				zkembed.ReplyError(zkembed.CodeThrottledOp))
			begun := time.Now()
			require.NoError(b, ask(b, admin, h.Node()))
			require.Equal(b, 3, refused.Fired())
			require.GreaterOrEqual(b, time.Since(begun), 3*T/50)
		})
	}
}
