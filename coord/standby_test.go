package coord_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAClaimThatWaitsForHoursHasItsSessionWriteNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, standby := b.Open(), b.Open()
		held := b.acquire(holder)
		waits := b.acquireLater(standby)
		time.Sleep(T)
		before := b.Server.SessionCounts(standby.Info().SessionID)
		time.Sleep(3 * time.Hour)
		require.Zero(b, b.Server.SessionCounts(standby.Info().SessionID).Since(before).Total())

		require.NoError(b, held.Release(b.Context()))
		h := b.granted(waits)
		synctest.Wait()
		took := b.Server.SessionCounts(standby.Info().SessionID).Since(before)
		require.Equal(b, 2, took[zkembed.OpMulti], "two writes, one after the other, open the window: %v", took)
		require.LessOrEqual(b, took.Total(), 4, "%v", took)
		time.Sleep(time.Hour)
		require.NoError(b, h.Err())
	})
}

// The standby's connection is lost now and then, and its machine is suspended,
// for less than its session lasts.
func TestAClaimThatWaitsThroughReconnectsAndSuspendsIsGrantedAHoldThatLasts(t *testing.T) {
	inBubble(t, func(b bubble) {
		var slept atomic.Int64
		holder := b.Open()
		standby := b.Open(coord.WithSuspended(func() time.Duration { return time.Duration(slept.Load()) }))
		for round := range 20 {
			held := b.acquire(holder)
			waits := b.acquireLater(standby)
			for range round {
				time.Sleep(T)
				slept.Add(int64(T / 3))
				b.Server.DropConns()
				time.Sleep(T / 7)
			}
			require.NoError(b, held.Release(b.Context()))
			h := b.granted(waits)
			require.Greater(b, time.Until(h.Deadline()), T/8)
			time.Sleep(2 * T)
			require.NoError(b, h.Err())
			require.NoError(b, h.Release(b.Context()))
		}
	})
}

// The holder's session ends at any distance from the end of the window of the
// session that waits, also in the same instant.
func TestAHolderDiesAsTheWindowOfItsSuccessorCloses(t *testing.T) {
	for early := -T / 10; early <= T/4; early += T / 100 {
		inBubble(t, func(b bubble) {
			holder, standby := b.Open(), b.Open()
			held := b.acquire(holder)
			waits := b.acquireLater(standby)
			time.Sleep(T - T/25 - early)
			require.NoError(b, b.Server.ExpireSession(held.Session()))
			h := b.granted(waits)
			require.NoError(b, h.Err())
			<-held.Done()
			time.Sleep(2 * T)
			require.NoError(b, h.Err())
		})
	}
}

func TestAClaimThatTheServerHasNotSeenYetIsWaitedFor(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		b.Server.AddFollower(5*time.Second, admin.Info().SessionID)
		h := b.Hold(recipe.Acquire(b.Context(), c, &mutex, first))
		_, err := inspect.Await(b.Within(time.Minute), admin, h.Node(), h.Token(), 0)
		require.ErrorIs(b, err, context.DeadlineExceeded)
	})
}
