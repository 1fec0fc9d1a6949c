package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestProgramsThatDisagreeAboutTheLimitAreRefused(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client(3))
		other := s.client(5)
		_, err := other.Acquire(coordtest.Limited(s))
		require.ErrorIs(s, err, semaphore.ErrLimit)
		require.ErrorContains(s, err, s.limit()+" says 3, this program 5")
		require.ErrorIs(s, coordtest.Err(other.TryAcquire(coordtest.Limited(s))), semaphore.ErrLimit)
		s.nodes(s.queue(), 0)
		s.release(h)
	})
}

func TestTheFirstProgramStoresTheLimit(t *testing.T) {
	each(t, func(s scene) {
		follower := s.client(semaphore.Stored)
		require.ErrorIs(s, coordtest.Err(follower.Limit(coordtest.Limited(s))), semaphore.ErrLimit)
		_, err := follower.Acquire(coordtest.Limited(s))
		require.ErrorIs(s, err, semaphore.ErrLimit)
		require.ErrorContains(s, err, "SetLimit")
		s.release(s.acquire(s.client(2)))
		limit, err := follower.Limit(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, 2, limit)
		s.release(s.acquire(follower))
	})
}

func TestARaisedLimitIsFollowedAtOnce(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(semaphore.Stored)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		held := s.acquire(sem)
		first := s.wait(s.Context(), s.client(semaphore.Stored), 1, 1)
		second := s.wait(s.Context(), sem, 1, 2)
		require.NoError(s, s.client(7).SetLimit(coordtest.Limited(s), 2))
		one := s.granted(first)
		require.Empty(s, second)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 3))
		s.release(s.granted(second), one, held)
	})
}

func TestALoweredLimitTakesNothingBack(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(semaphore.Stored)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 3))
		a, b, c := s.acquire(sem), s.acquire(sem), s.acquire(sem)
		waits := s.wait(s.Context(), sem, 1, 1)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		s.release(a)
		s.release(b)
		require.NoError(s, c.Err())
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
		require.Empty(s, waits, "more than the lowered limit")
		s.release(c)
		s.release(s.granted(waits))
	})
}

func TestAWaiterThatDisagreesWithAChangedLimitGetsAnError(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(2)
		held, err := sem.AcquireN(coordtest.Limited(s), 2)
		require.NoError(s, err)
		first := s.wait(s.Context(), sem, 1, 1)
		second := s.wait(s.Context(), s.client(2), 1, 2)
		tooMany := s.wait(s.Context(), s.client(semaphore.Stored), 2, 3)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, first, "the news").err, semaphore.ErrLimit)
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, second, "the news").err, semaphore.ErrLimit)
		err = zktest.Receive(s, coordtest.Soon, tooMany, "the news").err
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "2 leases at once, of a semaphore of 1")
		require.NoError(s, held.Err(), "a holder is not affected")
		s.release(held)
		s.nodes(s.queue(), 0)
	})
}

func TestDataThatAreNoLimitAreReportedAndCanBeReplaced(t *testing.T) {
	each(t, func(s scene) {
		c := s.open(s.w.ConnectString())
		sem := s.of(c, 2)
		s.release(s.acquire(sem))
		for _, garbage := range []string{"x", "-1", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "99999999999999999999"} {
			require.NoError(s, coordtest.Err(c.Set(coordtest.Limited(s), s.limit(), []byte(garbage), -1)))
			_, err := sem.Acquire(coordtest.Limited(s))
			require.ErrorIs(s, err, semaphore.ErrLimit, "%q", garbage)
			require.ErrorContains(s, err, s.limit())
			require.NoError(s, sem.SetLimit(coordtest.Limited(s), 2))
			s.release(s.acquire(sem))
		}
		// Kazoo makes the node before it has a limit.
		require.NoError(s, coordtest.Err(c.Set(coordtest.Limited(s), s.limit(), nil, -1)))
		s.release(s.acquire(sem))
		limit, err := sem.Limit(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, 2, limit)
	})
}

func TestALimitWhoseRequestOrReplyIsLostIsStored(t *testing.T) {
	for name, action := range map[string]proxy.Action{"reply": proxy.CutOnReply, "request": proxy.DropAndCut} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				p := s.w.Proxy()
				sem := s.of(s.open(p.Addr()), 2)
				lost := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.limit(), Do: action})
				s.release(s.acquire(sem)) // stores its own
				require.Equal(s, 1, lost.Fired())
				lost = p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.limit(), Do: action})
				require.NoError(s, sem.SetLimit(coordtest.Limited(s), 4))
				require.Equal(s, 1, lost.Fired())
				limit, err := sem.Limit(coordtest.Limited(s))
				require.NoError(s, err)
				require.Equal(s, 4, limit)
			})
		})
	}
}

// One lease was granted while the limit was 1, the other was made then, and is
// granted since the limit was raised.
func TestTwoLeasesDoNotBothHaveATokenWhenTheLimitWasRaised(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		s, err := semaphore.New(c, "/s", semaphore.Stored)
		require.NoError(b, err)
		require.NoError(b, s.SetLimit(b.Context(), 1))
		first := coordtest.Acquire(b, s)
		require.NotZero(b, first.Token())
		waiting, err := semaphore.New(other, "/s", semaphore.Stored)
		require.NoError(b, err)
		granted := make(chan *coord.Hold, 1)
		go func() {
			h, err := waiting.Acquire(b.Context())
			if err != nil {
				b.Error(err)
			}
			granted <- h
		}()
		time.Sleep(time.Minute)
		require.Empty(b, granted)
		require.NoError(b, s.SetLimit(b.Context(), 2))
		second := <-granted
		require.Zero(b, second.Token())
		require.NoError(b, first.Err())
		require.NoError(b, first.Release(b.Context()))
		require.NoError(b, second.Release(b.Context()))
		b.Close(c, other)
	})
}
