package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// endsTooLate requires that a hold ends because it lasted too long.
func endsTooLate(t testing.TB, h *coord.Hold) {
	t.Helper()
	zktest.Receive(t, coordtest.Soon, h.Done(), "the end of the hold")
	require.ErrorIs(t, h.Err(), coord.ErrLost)
	require.ErrorIs(t, h.Err(), hold.ErrHeldTooLong)
}

func TestAHoldThatLastsTooLongIsAskedForAndThenEnds(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.MaxHold(time.Hour, time.Minute))
		h, begun := coordtest.Acquire(b, m), time.Now()
		held, revoked := h.Context(b.Context()), h.Revoked()
		next := coordtest.Go(func() *coord.Hold {
			other, err := mutex(b.T, b.Open(), "/lock").Acquire(b.Context())
			require.NoError(b, err)
			require.Error(b, h.Err(), "two hold")
			return other
		})
		time.Sleep(time.Hour - time.Second)
		require.False(b, coordtest.Call(b, m.Contenders)[0].Revoked)
		zktest.Receive(b, 2*time.Second, revoked, "the request")
		require.True(b, coordtest.Call(b, m.Contenders)[0].Revoked)
		require.NoError(b, h.Err())
		<-held.Done()
		require.ErrorIs(b, context.Cause(held), hold.ErrHeldTooLong)
		require.Equal(b, time.Hour+time.Minute, time.Since(begun))
		endsTooLate(b, h)
		other := <-next
		require.Less(b, time.Since(begun), time.Hour+time.Minute+time.Second)
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(2 * time.Hour)
		require.NoError(b, other.Err(), "a hold of a mutex that has no bound")
		require.NoError(b, other.Release(b.Context()))
	})
}

func TestAHoldThatLastsTooLongEndsWithoutTheServers(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.MaxHold(time.Minute, time.Second))
		h, begun := coordtest.Acquire(b, m), time.Now()
		time.Sleep(time.Minute - time.Second)
		cut := b.Server.Partition(zkembed.Cut{})
		<-h.Done()
		require.Equal(b, time.Minute+time.Second, time.Since(begun))
		endsTooLate(b, h)
		cut.Heal()
		require.NoError(b, coordtest.Acquire(b, mutex(b.T, b.Open(), "/lock")).Release(b.Context()))
	})
}

func TestADoThatLastsTooLongSaysSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.MaxHold(time.Minute, 0))
		err := m.Do(b.Context(), func(context.Context, *coord.Hold) error {
			time.Sleep(time.Hour) // heeds nothing
			return nil
		})
		require.ErrorIs(b, err, coord.ErrLost)
		require.ErrorIs(b, err, hold.ErrHeldTooLong)
		h := coordtest.Call(b, m.TryAcquire)
		<-h.Done()
		endsTooLate(b, h)
	})
}

// Each turn has the whole time, and one that takes longer ends with its node.
func TestATurnThatLastsTooLongEnds(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(1000, time.Hour), lock.Linger(time.Hour),
			lock.MaxHold(time.Minute, time.Minute))
		node := ""
		for range 10 {
			h := coordtest.Acquire(b, m)
			require.Contains(b, []string{"", node}, node)
			node = h.Node()
			time.Sleep(time.Minute - time.Second)
			require.NoError(b, h.Release(b.Context()))
		}
		h := coordtest.Acquire(b, m)
		require.Equal(b, node, h.Node(), "a turn that ended in time cost the node")
		time.Sleep(90 * time.Second)
		require.NoError(b, h.Release(b.Context()))
		h = coordtest.Acquire(b, m)
		require.NotEqual(b, node, h.Node(), "the node was asked for")
		<-h.Done()
		endsTooLate(b, h)
		require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
	})
}

func TestHandlesInsideOfAHoldThatLastsTooLongEnd(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Reentrant(), lock.MaxHold(time.Minute, 0))
		outer := coordtest.Acquire(b, m)
		time.Sleep(30 * time.Second)
		inner, err := m.Acquire(outer.Context(b.Context()))
		require.NoError(b, err)
		time.Sleep(31 * time.Second)
		endsTooLate(b, outer)
		endsTooLate(b, inner)
		outer = coordtest.Acquire(b, m)
		inner, err = m.Acquire(outer.Context(b.Context()))
		require.NoError(b, err)
		require.NoError(b, outer.Release(b.Context()))
		<-inner.Done()
		endsTooLate(b, inner)
	})
}

func TestAHoldThatLastsTooLongGoesToTheNext(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		m := mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock"),
			lock.MaxHold(20*time.Millisecond, 20*time.Millisecond))
		h := coordtest.Acquire(t, m)
		next := coordtest.Acquire(t, mutex(t, coordtest.Open(t, w.ConnectString()), w.Path("lock")))
		require.Error(t, h.Err(), "two hold")
		endsTooLate(t, h)
		require.NoError(t, next.Release(coordtest.Limited(t)))
	})
}
