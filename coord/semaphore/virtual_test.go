package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
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
	granted := coordtest.Go(func() grant {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), time.Hour)
		defer cancel()
		g, err := s.AcquireN(ctx, n)
		return grant{g, err}
	})
	time.Sleep(time.Second)
	return granted
}

func (b bubble) hold(s *semaphore.Semaphore, n int) *recipe.Group {
	b.Helper()
	return b.granted(b.wait(s, n))
}

func (b bubble) granted(waiting <-chan grant) *recipe.Group {
	b.Helper()
	g := <-waiting
	require.NoError(b, g.err)
	return g.group
}

func (b bubble) release(groups ...*recipe.Group) {
	b.Helper()
	for _, g := range groups {
		require.NoError(b, g.Release(b.Context()))
	}
}

// children lists the nodes in a directory, the youngest first.
func (b bubble) children(dir string) (paths []string) {
	var newest int64
	for _, node := range b.Server.Nodes() {
		switch {
		case !strings.HasPrefix(node.Path, dir+"/"):
		case node.Stat.Czxid > newest:
			paths, newest = append([]string{node.Path}, paths...), node.Stat.Czxid
		default:
			paths = append(paths, node.Path)
		}
	}
	return paths
}

func TestALeaseThatIsReleasedGoesToTheOneThatWaits(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(1), 1)
		require.Empty(b, waiting)
		b.release(held)
		b.release(b.granted(waiting))
	})
}

func TestAWaiterHearsThatTheLimitIsRaised(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(semaphore.Stored), 1)
		require.Empty(b, waiting)
		require.NoError(b, b.semaphore(2).SetLimit(b.Context(), 2))
		b.release(b.granted(waiting), held)
	})
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
		b.release(b.granted(one))
		b.release(b.granted(other))
	})
}

// makesAnother has an acquire wait, deletes its node in dir, the youngest of n,
// and requires another in its place.
func (b bubble) makesAnother(dir string, n int) {
	b.Helper()
	held := b.hold(b.semaphore(1), 1)
	waiting := b.wait(b.semaphore(1), 1)
	before := b.children(dir)
	require.Len(b, before, n)
	b.delete(before[0])
	after := b.children(dir)
	require.Len(b, after, n, "it waits without a node")
	require.NotEqual(b, before, after)
	b.release(held)
	b.release(b.granted(waiting))
}

func TestAWaiterThatLosesItsPlaceInTheQueueTakesAnother(t *testing.T) {
	inBubble(t, func(b bubble) { b.makesAnother("/s/locks", 1) })
}

func TestAWaiterThatLosesItsLeaseMakesAnother(t *testing.T) {
	inBubble(t, func(b bubble) { b.makesAnother("/s/leases", 2) })
}

func TestAChildOfAnUnknownShapeIsALeaseToThoseThatWait(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(2), 1)
		require.NoError(b, b.Open().Create(b.Context(), "/s/leases/whatever this is", nil))
		waiting := b.wait(b.semaphore(2), 1)
		require.Empty(b, waiting, "more than the limit")
		b.delete("/s/leases/whatever this is")
		b.release(b.granted(waiting), held)
	})
}

// Kazoo counts the leases while it is the first in the queue, then makes its
// own, and does not count again.
func TestAPlaceInTheQueueThatWasLostIsNoticedBeforeTheGrant(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo := coord.WithDialect(coord.Kazoo)
		b.release(b.hold(b.semaphore(1, kazoo), 1))
		late := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/s-__lock__/", Times: 1,
		}, zkembed.Delay(2*time.Second))
		waiting := b.wait(b.semaphore(1, kazoo), 1)
		select {
		case <-late.Struck(): // its lease is made and counted
		case <-waiting:
			require.FailNow(b, "granted without a look at the place")
		}
		const other = "/s/0123456789abcdef0123456789abcdef"
		_, err := b.Open().Txn(b.Context(), coord.DeleteOp(b.children("/s-__lock__")[0], -1), coord.EphemeralOp(other, nil))
		require.NoError(b, err)
		time.Sleep(T)
		require.Empty(b, waiting, "two hold")
		b.delete(other)
		b.release(b.granted(waiting))
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
		making := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/s/", Times: 1}, zkembed.DelayReply(T))
		waiting := b.wait(s, 1)
		<-making.Struck()
		deaf := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToClient, Sessions: []int64{c.SessionID()}})
		for former := c.SessionID(); c.SessionID() == former || c.SessionID() == 0; {
			time.Sleep(time.Second)
		}
		deaf.Heal()
		b.release(b.granted(waiting))
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
		b.release(b.granted(waiting), h)
	})
}

func TestF56ACallThatHasWaitedForALeaseIsNotRefusedWhenItQueuesAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(1), 1)
		remove := b.Foreign("/s/locks")
		b.delete(b.children("/s/leases")[0])
		b.release(h)
		time.Sleep(time.Minute)
		require.Empty(b, waiting)
		remove()
		b.release(b.granted(waiting))
	})
}

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

// One lease was granted while the limit was 1. The other was made then, and
// granted after the limit was raised.
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
		granted := coordtest.Go(func() *coord.Hold {
			h, err := waiting.Acquire(b.Context())
			if err != nil {
				b.Error(err)
			}
			return h
		})
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
