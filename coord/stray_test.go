package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// creates makes the server carry out the next create of a session late: so many
// attempts, each after its delay.
func (b bubble) lateCreates(session int64, after time.Duration, times int) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Session: session, Ops: []zkembed.Op{zkembed.OpCreate}, Times: times}, zkembed.CarryOutLate(after))
}

// strays counts the strays that a client tells of.
func strays(n *int) coord.Option {
	return coord.WithObserver(func(e coord.Event) {
		if e.Kind == coord.StrayRemoved {
			*n++
		}
	})
}

func TestANodeThatAServerMakesLateStopsNobody(t *testing.T) {
	for times := range 4 {
		inBubble(t, func(b bubble) {
			removed := 0
			c, other := b.Open(strays(&removed)), b.Open()
			require.NoError(b, b.acquire(other).Release(b.Context())) // the directory is there
			late := b.lateCreates(c.SessionID(), T/4, times)
			if times == 0 {
				late.Remove()
			}
			h := b.acquire(c)
			require.Equal(b, times, late.Fired())
			time.Sleep(T) // until the late ones have come and gone
			require.NoError(b, h.Err(), "the hold is not touched")
			require.Equal(b, 1, b.owned(c.SessionID()))
			require.Equal(b, times, removed)
			require.NoError(b, h.Release(b.Context()))
			require.NoError(b, b.acquire(other).Release(b.Context()))
		})
	}
}

func TestANodeThatAServerMakesAfterItsCallerHasGivenUpIsRemoved(t *testing.T) {
	for _, spec := range []coord.Spec{mutex, {Line: coord.Line{Dir: "/lock"}, Name: "one"}} {
		inBubble(t, func(b bubble) {
			removed := 0
			c := b.Open(strays(&removed))
			require.NoError(b, b.acquire(c).Release(b.Context()))
			late := b.lateCreates(c.SessionID(), T, 1)
			ctx, cancel := context.WithCancel(b.Context())
			go func() {
				<-late.Struck()
				cancel()
			}()
			_, err := c.Join(ctx, spec)
			require.ErrorIs(b, err, context.Canceled)
			time.Sleep(2 * T)
			require.Zero(b, b.owned(c.SessionID()))
			require.Equal(b, 1, removed)
		})
	}
}

// The node of a name that the same client has asked for again is not a stray.
func TestAnotherClaimOfTheNameIsNoStray(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/lock"}, Name: "one"}
		require.NoError(b, b.acquire(c).Release(b.Context()))
		late := b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Drop())
		first, err := c.Join(b.Context(), spec)
		require.NoError(b, err)
		require.Equal(b, 1, late.Fired())
		require.NoError(b, first.Leave(b.Context()))
		second, err := c.Join(b.Context(), spec)
		require.NoError(b, err)
		require.NoError(b, b.Server.DropConn(c.SessionID()))
		time.Sleep(T)
		require.Equal(b, 1, b.owned(c.SessionID()))
		require.NoError(b, second.Leave(b.Context()))
	})
}

// After ten session time-outs nobody looks any more, and nobody probes.
func TestADoubtEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, b.acquire(c).Release(b.Context()))
		b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Drop())
		require.NoError(b, b.acquire(c).Release(b.Context()))
		writes := func() (n int) {
			counted := b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.DelayReply(0))
			time.Sleep(T)
			counted.Remove()
			return counted.Fired()
		}
		time.Sleep(T)
		require.NotZero(b, writes(), "without a write nobody would see that the session has moved")
		time.Sleep(10 * T)
		require.Zero(b, writes())
	})
}

func TestATransactionThatWasRefusedIsNotCarriedOutLate(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		o := b.once(c)
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		_, err := o.Txn(b.Context(), add) // makes the witness
		require.NoError(b, err)
		late := b.strike(zkembed.CarryOutLate(T/4), 1)
		_, err = o.Txn(b.Context(), coord.CreateOp("/missing/n", nil, coord.Persistent))
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		require.Equal(b, 1, late.Fired())
		require.NoError(b, b.Open().EnsureDir(b.Context(), "/missing"))
		time.Sleep(T)
		require.Zero(b, b.children("/missing"))
	})
}
