package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

const T = coordtest.T

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

// semaphore returns the one at /s for a client of its own.
func (b bubble) semaphore(limit int, opts ...coord.Option) *semaphore.Semaphore {
	b.Helper()
	s, err := semaphore.New(b.Open(opts...), "/s", limit)
	require.NoError(b, err)
	return s
}

// wait acquires n leases in the background, and gives up after an hour.
func (b bubble) wait(s *semaphore.Semaphore, n int) <-chan grant {
	granted := acquireN(b.Within(time.Hour), s, n)
	time.Sleep(time.Second)
	return granted
}

func (b bubble) hold(s *semaphore.Semaphore, n int) *hold.Set {
	b.Helper()
	return coordtest.Had(b, b.wait(s, n))
}

func (b bubble) release(groups ...*hold.Set) {
	b.Helper()
	for _, g := range groups {
		require.NoError(b, g.Release(b.Context()))
	}
}

// Leases that were made in turns would keep each other waiting for ever.
func TestTwoThatWantAllLeasesAtTheSameTimeGetThemOneAfterTheOther(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(2), 1)
		b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/s/leases/", Skip: 1, Times: 1,
		}, zkembed.Delay(2*time.Second))
		one, other := b.wait(b.semaphore(2), 2), b.wait(b.semaphore(2), 2)
		time.Sleep(T)
		b.release(held)
		b.release(coordtest.Had(b, one))
		b.release(coordtest.Had(b, other))
	})
}

// The servers hear the client and keep its session, but it does not hear them:
// after T it gives the session up. The lease that it was making is still there,
// and may count until the servers have ended the session.
func TestALeaseOfKazoosWhoseSessionIsGivenUpWhileItIsMadeIsMadeAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithDialect(coord.Kazoo))
		s, err := semaphore.New(c, "/s", 2)
		require.NoError(b, err)
		b.release(b.hold(s, 1)) // makes the directories
		making := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/s/", Times: 1},
			zkembed.DelayReply(T))
		waiting := b.wait(s, 1)
		<-making.Struck()
		deaf := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToClient, Sessions: []int64{c.Info().SessionID}})
		for former := c.Info().SessionID; c.Info().SessionID == former || c.Info().SessionID == 0; {
			time.Sleep(time.Second)
		}
		deaf.Heal()
		b.release(coordtest.Had(b, waiting))
	})
}

// delete deletes a node by hand, and returns when all have heard of it.
func (b bubble) delete(node string) {
	b.Helper()
	require.NoError(b, inspect.Break(b.Context(), b.Open(), node))
	time.Sleep(time.Second)
}

// A node of the other dialect counts as a lease, as every child does, and is no
// reason to refuse one, least of all when it is gone.
func TestF56ALeaseThatWaitsIsNotRefusedForAContenderOfTheOtherDialect(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.release(b.hold(b.semaphore(2), 1)) // makes the directories
		node := "/s/leases/0123456789abcdef0123456789abcdef__lease__0000000000"
		admin := b.Open()
		require.NoError(b, admin.Create(b.Context(), node, nil))
		h := b.hold(b.semaphore(2), 1)
		waiting := b.wait(b.semaphore(2), 1)
		time.Sleep(time.Minute)
		require.Empty(b, waiting)
		require.NoError(b, admin.Delete(b.Context(), node, -1))
		b.release(coordtest.Had(b, waiting), h)
	})
}

func TestF56ACallThatHasWaitedForALeaseIsNotRefusedWhenItQueuesAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		s := b.semaphore(1)
		h, waiting := b.hold(s, 1), b.wait(b.semaphore(1), 1)
		remove := b.Foreign("/s/locks")
		line := coordtest.Call(b, s.Contenders)
		b.delete(line[1].Node) // the lease of the one that waits
		b.release(h)
		time.Sleep(time.Minute)
		require.Empty(b, waiting)
		remove()
		b.release(coordtest.Had(b, waiting))
	})
}

func TestProgramsThatDisagreeAboutTheLimitAreRefused(t *testing.T) {
	each(t, func(s scene) {
		h := coordtest.Acquire(s, s.client(3))
		other := s.client(5)
		_, err := other.Acquire(coordtest.Limited(s))
		require.ErrorIs(s, err, coord.ErrDisagree)
		require.ErrorContains(s, err, s.Limit+" says 3, this program 5")
		require.ErrorIs(s, coordtest.Err(other.TryAcquire(coordtest.Limited(s))), coord.ErrDisagree)
		s.nodes(s.Queue.Dir, 0)
		s.release(h)
	})
}

func TestTheFirstProgramStoresTheLimit(t *testing.T) {
	each(t, func(s scene) {
		follower := s.client(semaphore.Stored)
		require.ErrorIs(s, coordtest.Err(follower.Limit(coordtest.Limited(s))), coord.ErrDisagree)
		_, err := follower.Acquire(coordtest.Limited(s))
		require.ErrorIs(s, err, coord.ErrDisagree)
		require.ErrorContains(s, err, "SetLimit")
		s.release(coordtest.Acquire(s, s.client(2)))
		require.Equal(s, 2, coordtest.Call(s, follower.Limit))
		s.release(coordtest.Acquire(s, follower))
	})
}

func TestARaisedLimitIsFollowedAtOnce(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(semaphore.Stored)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		held := coordtest.Acquire(s, sem)
		first := s.wait(s.Context(), s.client(semaphore.Stored), 1, 1)
		second := s.wait(s.Context(), sem, 1, 2)
		require.NoError(s, s.client(7).SetLimit(coordtest.Limited(s), 2))
		one := coordtest.Had(s, first)
		require.Empty(s, second)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 3))
		s.release(coordtest.Had(s, second), one, held)
	})
}

func TestALoweredLimitTakesNothingBack(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(semaphore.Stored)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 3))
		a, b, c := coordtest.Acquire(s, sem), coordtest.Acquire(s, sem), coordtest.Acquire(s, sem)
		waits := s.wait(s.Context(), sem, 1, 1)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		s.release(a)
		s.release(b)
		require.NoError(s, c.Err())
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
		require.Empty(s, waits, "more than the lowered limit")
		s.release(c)
		s.release(coordtest.Had(s, waits))
	})
}

func TestAWaiterThatDisagreesWithAChangedLimitGetsAnError(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(2)
		held := s.hold(sem, 2)
		first := s.wait(s.Context(), sem, 1, 1)
		second := s.wait(s.Context(), s.client(2), 1, 2)
		tooMany := s.wait(s.Context(), s.client(semaphore.Stored), 2, 3)
		require.NoError(s, sem.SetLimit(coordtest.Limited(s), 1))
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, first, "the news").Err, coord.ErrDisagree)
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, second, "the news").Err, coord.ErrDisagree)
		err := zktest.Receive(s, coordtest.Soon, tooMany, "the news").Err
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, "2 leases at once, of a semaphore of 1")
		require.NoError(s, held.Err(), "a holder is not affected")
		s.release(held)
		s.nodes(s.Queue.Dir, 0)
	})
}

func TestDataThatAreNoLimitAreReportedAndCanBeReplaced(t *testing.T) {
	each(t, func(s scene) {
		c := s.open(s.w.ConnectString())
		sem := s.of(c, 2)
		s.release(coordtest.Acquire(s, sem))
		for _, garbage := range []string{"x", "-1", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "99999999999999999999"} {
			require.NoError(s, coordtest.Err(c.Set(coordtest.Limited(s), s.Limit, []byte(garbage), -1)))
			_, err := sem.Acquire(coordtest.Limited(s))
			require.ErrorIs(s, err, coord.ErrDisagree, "%q", garbage)
			require.ErrorContains(s, err, s.Limit)
			require.NoError(s, sem.SetLimit(coordtest.Limited(s), 2))
			s.release(coordtest.Acquire(s, sem))
		}
		// Kazoo makes the node before it has a limit.
		require.NoError(s, coordtest.Err(c.Set(coordtest.Limited(s), s.Limit, nil, -1)))
		s.release(coordtest.Acquire(s, sem))
		require.Equal(s, 2, coordtest.Call(s, sem.Limit))
	})
}

func TestALimitWhoseRequestOrReplyIsLostIsStored(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		each(t, func(s scene) {
			p := s.w.Proxy()
			sem := s.of(s.open(p.Addr()), 2)
			lost := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.Limit, Do: action})
			s.release(coordtest.Acquire(s, sem)) // stores its own
			require.Equal(s, 1, lost.Fired())
			lost = p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.Limit, Do: action})
			require.NoError(s, sem.SetLimit(coordtest.Limited(s), 4))
			require.Equal(s, 1, lost.Fired())
			require.Equal(s, 4, coordtest.Call(s, sem.Limit))
		})
	})
}

// One lease was granted while the limit was 1. The other was made then, and
// granted after the limit was raised.
func TestTwoLeasesDoNotBothHaveATokenWhenTheLimitWasRaised(t *testing.T) {
	inBubble(t, func(b bubble) {
		s := b.semaphore(semaphore.Stored)
		require.NoError(b, s.SetLimit(b.Context(), 1))
		first := b.hold(s, 1)
		require.NotZero(b, first.Holds()[0].Token())
		granted := b.wait(b.semaphore(semaphore.Stored), 1)
		time.Sleep(time.Minute)
		require.Empty(b, granted)
		require.NoError(b, s.SetLimit(b.Context(), 2))
		second := coordtest.Had(b, granted)
		require.Zero(b, second.Holds()[0].Token())
		require.NoError(b, first.Err())
		b.release(first, second)
	})
}

func TestALimitIsRefusedOnlyByTheLatestOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.semaphore(3)
		require.NoError(b, coordtest.Call(b, other.Acquire).Release(b.Context()))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, other.SetLimit(b.Context(), 5))
		s, err := semaphore.New(c, "/s", 5)
		require.NoError(b, err)
		require.NoError(b, coordtest.Call(b, s.Acquire).Release(b.Context()))
	})
}
