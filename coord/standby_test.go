package coord_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// standBy acquires in the background, however long that takes.
func (b bubble) standBy(c *coord.Client) <-chan granted {
	done := make(chan granted, 1)
	go func() {
		h, err := c.Acquire(b.Context(), mutex, first)
		done <- granted{h, err}
	}()
	return done
}

func TestAClaimThatWaitsForHoursHasItsSessionWriteNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, standby := b.Open(), b.Open()
		held := b.acquire(holder)
		waits := b.standBy(standby)
		time.Sleep(T)
		before := b.Server.SessionCounts(standby.SessionID())
		time.Sleep(3 * time.Hour)
		require.Zero(b, b.Server.SessionCounts(standby.SessionID()).Since(before).Total())

		require.NoError(b, held.Release(b.Context()))
		h := <-waits
		require.NoError(b, h.err)
		synctest.Wait()
		took := b.Server.SessionCounts(standby.SessionID()).Since(before)
		require.Equal(b, 2, took[zkembed.OpMulti], "two writes, one after the other, open the window: %v", took)
		require.LessOrEqual(b, took.Total(), 4, "%v", took)
		time.Sleep(time.Hour)
		require.NoError(b, h.hold.Err())
		require.NoError(b, h.hold.Release(b.Context()))
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
			waits := b.standBy(standby)
			for range round {
				time.Sleep(T)
				slept.Add(int64(T / 3))
				b.Server.DropConns()
				time.Sleep(T / 7)
			}
			require.NoError(b, held.Release(b.Context()))
			h := <-waits
			require.NoError(b, h.err)
			require.Greater(b, time.Until(h.hold.Deadline()), T/8)
			time.Sleep(2 * T)
			require.NoError(b, h.hold.Err())
			require.NoError(b, h.hold.Release(b.Context()))
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
			waits := b.standBy(standby)
			synctest.Wait()
			time.Sleep(T - T/25 - early)
			require.NoError(b, b.Server.ExpireSession(held.Session()))
			h := <-waits
			require.NoError(b, h.err)
			require.NoError(b, h.hold.Err())
			<-held.Done()
			time.Sleep(2 * T)
			require.NoError(b, h.hold.Err())
			require.NoError(b, h.hold.Release(b.Context()))
		})
	}
}
