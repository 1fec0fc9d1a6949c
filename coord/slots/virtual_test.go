package slots_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const cooldown = 10 * time.Minute

// acquired acquires in a bubble, where there is time enough.
func acquired(b coordtest.Bubble, s *slots.Slots) *slots.Slot {
	b.Helper()
	slot, err := s.Acquire(b.Context())
	require.NoError(b, err)
	return slot
}

func TestAnotherIsGivenTheNumberOfAnOwnerThatIsAwayAfterTheCooldown(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		release(b, acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))))
		begun := time.Now()
		slot := acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("b", 0)))
		require.GreaterOrEqual(b, time.Since(begun), cooldown)
		require.Less(b, time.Since(begun), cooldown+time.Second)
		// Now it is b's.
		a := of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))
		busy(b, a)
		release(b, slot)
		begun = time.Now()
		release(b, acquired(b, a))
		require.Less(b, time.Since(begun), time.Second, "no cooldown")
	})
}

// The time counts from the first look at the free number, whoever looked.
func TestTheCooldownBeginsWhenAnyoneFindsTheNumberFree(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		release(b, acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))))
		busy(b, of(b, b.Open(), "/ids", 1))
		time.Sleep(cooldown - time.Second)
		late := of(b, b.Open(), "/ids", 1)
		busy(b, late)
		time.Sleep(2 * time.Second)
		slot, err := late.TryAcquire(b.Context())
		require.NoError(b, err)
		release(b, slot)
	})
}

func TestAnOwnerThatReturnsBeginsItsCooldownAnew(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		a, other := of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown)), of(b, b.Open(), "/ids", 1)
		release(b, acquired(b, a))
		busy(b, other)
		time.Sleep(cooldown - time.Second)
		slot := acquired(b, a)
		time.Sleep(cooldown)
		busy(b, other)
		release(b, slot)
		busy(b, other)
		time.Sleep(cooldown - time.Second)
		busy(b, other)
		time.Sleep(2 * time.Second)
		release(b, acquired(b, other))
	})
}

// Of the owners that are away the one goes whose time was over first.
func TestTheOwnerThatIsAwayForLongestLosesItsNumber(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		long := acquired(b, of(b, b.Open(), "/ids", 2, slots.Durable("long", 2*cooldown)))
		release(b, acquired(b, of(b, b.Open(), "/ids", 2, slots.Durable("short", cooldown))), long)
		slot := acquired(b, of(b, b.Open(), "/ids", 2))
		require.Equal(b, 1, slot.Number)
		release(b, slot)
	})
}

// Nobody acts on what it has read if that is so no longer: the owner returns
// while another is about to note that it is away.
func TestAnOwnerThatReturnsIsNotNotedAsAway(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		a := of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))
		release(b, acquired(b, a))
		other := b.Open()
		slow := b.Server.Inject(zkembed.Match{
			Session: other.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/ids", Times: 1,
		}, zkembed.Delay(coordtest.T/6))
		noting := coordtest.Go(func() error { return coordtest.Err(of(b, other, "/ids", 1).TryAcquire(b.Context())) })
		<-slow.Struck()
		slot := acquired(b, a)
		require.ErrorIs(b, <-noting, coord.ErrBusy)
		list, err := a.List(b.Context())
		require.NoError(b, err)
		require.Equal(b, []string{"0 held a"}, texts(list))
		release(b, slot)
		held, err := other.Children(b.Context(), "/ids/held")
		require.NoError(b, err)
		require.Empty(b, held, "the node of the released number is gone")
	})
}

// One of them is cut off while it holds.
func TestNoTwoHoldANumberAtAnyInstant(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		slot := acquired(b, of(b, c, "/ids", 1))
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}})
		next := acquired(b, of(b, b.Open(), "/ids", 1))
		require.ErrorIs(b, slot.Err(), coord.ErrLost)
		require.Greater(b, next.Token(), slot.Token())
		cut.Heal()
		release(b, next)
	})
}

func TestClaimsWhoseRepliesAreLostAreFoundOut(t *testing.T) {
	for _, op := range []zkembed.Op{zkembed.OpMulti, zkembed.OpCreate2, zkembed.OpCreate, zkembed.OpDelete} {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			c := b.Open()
			pool := of(b, c, "/ids", 2, slots.Durable("a", 0))
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{op}, PathPrefix: "/ids"}, zkembed.LoseReply())
			time.AfterFunc(5*time.Second, lost.Remove)
			slot := acquired(b, pool)
			require.Equal(b, 0, slot.Number)
			release(b, slot)
			lost.Remove()
			slot = acquired(b, pool)
			require.Equal(b, 0, slot.Number)
			release(b, slot)
			list, err := pool.List(b.Context())
			require.NoError(b, err)
			require.Equal(b, []string{"0 a"}, texts(list))
		})
	}
}

// Who is first in line loses its place while it waits, and takes another.
func TestAPlaceInTheLineThatIsLostIsTakenAnew(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		slot := acquired(b, of(b, b.Open(), "/ids", 1))
		c := b.Open()
		wait := begin(b.Context(), of(b, c, "/ids", 1))
		time.Sleep(time.Second)
		require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		time.Sleep(time.Second)
		release(b, slot)
		release(b, coordtest.Had(b, wait))
	})
}

// All of them are told that another was faster, but for one.
func TestAClientDoesNotTakeTheNodeOfOneCallForThatOfAnother(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		pool := of(b, c, "/ids", 1)
		release(b, acquired(b, pool)) // makes the directories
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/ids/held", Times: 1},
			zkembed.Drop())
		var tries [4]<-chan granted
		for i := range tries {
			tries[i] = coordtest.Begin(b.Context(), pool.TryAcquire)
		}
		var held []*slots.Slot
		for _, try := range tries {
			if got := <-try; got.Err == nil {
				held = append(held, got.Value)
			} else {
				require.ErrorIs(b, got.Err, coord.ErrBusy)
			}
		}
		require.Equal(b, 1, lost.Fired())
		require.Len(b, held, 1, "hold the number")
		release(b, held...)
	})
}

// A server that was cut off carries the deletion out when the next one holds.
func TestALateDeletionDoesNotEndTheHoldOfTheNext(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		slot := acquired(b, of(b, c, "/ids", 1))
		late := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti, zkembed.OpDelete}, PathPrefix: "/ids/held", Times: 1,
		}, zkembed.CarryOutLate(coordtest.T/2))
		release(b, slot)
		require.Equal(b, 1, late.Fired())
		next := acquired(b, of(b, b.Open(), "/ids", 1))
		time.Sleep(coordtest.T)
		require.NoError(b, next.Err())
		release(b, next)
	})
}

// Between the look at a number and the claim, an owner takes it and goes.
func TestNobodyIsGivenANumberThatHasBecomeAnOwners(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		other := b.Open()
		pool := of(b, other, "/ids", 1)
		release(b, acquired(b, pool))
		slow := b.Server.Inject(zkembed.Match{
			Session: other.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/ids/held", Times: 1,
		}, zkembed.Delay(coordtest.T/6))
		trying := coordtest.Go(func() error { return coordtest.Err(pool.TryAcquire(b.Context())) })
		<-slow.Struck()
		release(b, acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))))
		require.ErrorIs(b, <-trying, coord.ErrBusy)
	})
}

// Both find that the owner has no number, and choose different ones, for the
// first is taken before the second looks at who holds.
func TestTwoTriesOfOneNameTakeOneNumber(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		release(b, acquired(b, of(b, b.Open(), "/ids", 2))) // makes the directories
		one, two := b.Open(), b.Open()
		slow := b.Server.Inject(zkembed.Match{
			Session: two.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: "/ids/held", Times: 1,
		}, zkembed.Delay(coordtest.T/6))
		other := of(b, two, "/ids", 2, slots.Durable("a", 0))
		trying := coordtest.Begin(b.Context(), other.TryAcquire)
		<-slow.Struck()
		first, err := of(b, one, "/ids", 2, slots.Durable("a", 0)).TryAcquire(b.Context())
		second := <-trying
		require.True(b, err == nil != (second.Err == nil), "%v, %v", err, second.Err)
		for _, slot := range []*slots.Slot{first, second.Value} {
			if slot != nil {
				release(b, slot)
			}
		}
	})
}

// The first in line, for whom only an owner's number is left, asks the servers
// for their time, and notes that the owner is away: it keeps its place when the
// replies are lost.
func TestTheFirstInLineKeepsItsPlaceOverALostReply(t *testing.T) {
	coordtest.InBubbles(t, map[string]int{"time": 1, "note": 3}, func(b coordtest.Bubble, operations int) {
		owned := acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown)))
		c := b.Open()
		first := begin(b.Context(), of(b, c, "/ids", 1))
		time.Sleep(time.Second)
		second := begin(b.Context(), of(b, b.Open(), "/ids", 1))
		time.Sleep(time.Second)
		lost := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti},
			PathPrefix: "/ids", Func: func(r zkembed.Request) bool {
				return len(r.Parts) == operations
			}, Times: 1,
		}, zkembed.LoseReply())
		release(b, owned)
		slot := coordtest.Had(b, first)
		require.Equal(b, 1, lost.Fired())
		require.Empty(b, second)
		release(b, slot)
		release(b, coordtest.Had(b, second))
	})
}

// A client that finds others there asks one of them how many numbers there are.
func TestANumberThatIsLostWhileAHolderIsAskedIsNotReturned(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		other, c := b.Open(), b.Open()
		first := acquired(b, of(b, other, "/ids", 2))
		require.NoError(b, coordtest.Write(b.Context(), c))
		asks := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: first.Node(), Times: 1,
		}, zkembed.Delay(coordtest.T/6))
		time.AfterFunc(coordtest.T/12, func() {
			require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		})
		begun := time.Now()
		slot := acquired(b, of(b, c, "/ids", 2))
		require.Equal(b, 1, asks.Fired())
		require.GreaterOrEqual(b, time.Since(begun), coordtest.T/12)
		require.NoError(b, slot.Err())
		release(b, slot, first)
	})
}

// The directory of holders is a container: the server removes it once nobody
// holds a number.
func TestAnOwnerIsForgottenThoughTheDirectoryOfHoldersGoes(t *testing.T) {
	for when, delay := range map[string]time.Duration{"before": 0, "meanwhile": time.Second} {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			c := b.Open()
			release(b, acquired(b, of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))))
			b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/ids/held", Times: 1},
				zkembed.DelayReply(2*time.Second))
			time.AfterFunc(delay, func() { b.Server.Reap() })
			time.Sleep(time.Millisecond)
			require.NoError(b, of(b, c, "/ids", 1).Forget(b.Context(), "a"), when)
			all, err := of(b, c, "/ids", 1).List(b.Context())
			require.NoError(b, err)
			for _, state := range all {
				require.Empty(b, state.Owner)
			}
		})
	}
}

func TestAnOwnerIsForgottenThoughAServerThatLagsHasNoneYet(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, owner := b.Open(), of(b, b.Open(), "/ids", 1, slots.Durable("a", cooldown))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		release(b, acquired(b, owner))
		require.NoError(b, of(b, c, "/ids", 1).Forget(b.Context(), "a"))
		all, err := owner.List(b.Context())
		require.NoError(b, err)
		for _, number := range all {
			require.Empty(b, number.Owner)
		}
	})
}

// A number that is broken by hand has a new owner before the former one hears.
func TestATransactionOfANumberThatAnotherHasIsRefused(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		require.NoError(b, other.Create(b.Context(), "/x", nil))
		former := acquired(b, of(b, c, "/ids", 1))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, inspect.Break(b.Context(), other, former.Node()))
		acquired(b, of(b, other, "/ids", 1))
		_, err := former.Txn(b.Context(), coord.SetOp("/x", []byte("stale"), -1))
		require.ErrorIs(b, err, coord.ErrLost)
	})
}

func TestAnAcquireIsSixRequestsInFourRoundTrips(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const way = 4 * time.Millisecond // a round trip
		c := b.Open()
		s := of(b, c, "/ids", 2)
		release(b, acquired(b, s)) // makes the directories
		release(b, acquired(b, s)) // and looks at them since
		b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(way))
		begun, took, slot := time.Now(), time.Duration(0), (*slots.Slot)(nil)
		asked := coordtest.Spent(b.Server, c, func() {
			slot = acquired(b, s)
			took = time.Since(begun)
			time.Sleep(2 * way) // the place in the line is deleted in the background
		})
		delete(asked, zkembed.OpNotify)
		require.Equal(b, zkembed.Counts{
			zkembed.OpCreate: 1, zkembed.OpGetChildren2: 2, zkembed.OpGetData: 1, zkembed.OpMulti: 1, zkembed.OpDelete: 1,
		}, asked)
		require.Equal(b, 4*way, took)
		other := acquired(b, of(b, b.Open(), "/ids", 2))
		begun = time.Now()
		release(b, slot)
		require.Equal(b, way, time.Since(begun))
		release(b, acquired(b, s)) // and hears of the change
		begun = time.Now()
		asked = coordtest.Spent(b.Server, c, func() { slot = acquired(b, s) })
		require.Equal(b, 4*way, time.Since(begun), "another is asked in the meantime")
		require.Equal(b, 2, asked[zkembed.OpGetData])
		release(b, slot, other)
	})
}
