package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestAWaiterWhoseNodesAreDeletedQueuesAgain(t *testing.T) {
	coordtest.Cases(t, map[string]int{"lease": 1, "place in the queue": 2}, func(t *testing.T, contender int) {
		each(t, func(s scene) {
			sem := s.client(1)
			held := coordtest.Acquire(s, sem)
			first := s.wait(s.Context(), s.client(1), 1, 1)
			second := s.wait(s.Context(), s.client(1), 1, 2)
			line := coordtest.Call(s, sem.Contenders)
			node := line[contender].Node
			require.NoError(s, s.w.Admin().Delete(node, -1))
			zktest.Eventually(s, coordtest.Soon, func() bool {
				exists, _, err := s.w.Admin().Exists(node)
				require.NoError(s, err)
				return !exists && len(coordtest.Children(s, s.w, s.Queue.Dir)) == 2 &&
					len(coordtest.Children(s, s.w, s.Leases.Dir)) == 2
			}, "both queue again, and one waits for a lease")
			require.Empty(s, first)
			require.Empty(s, second)
			s.release(held)
			s.release(coordtest.Had(s, second))
			s.release(coordtest.Had(s, first))
			s.nodes(s.Leases.Dir, 0)
		})
	})
}

func TestTheLeasesOfADeadSessionAreFree(t *testing.T) {
	each(t, func(s scene) {
		c := s.open(s.w.ConnectString())
		held := s.hold(s.of(c, 3), 3)
		waits := s.wait(s.Context(), s.client(3), 2, 1)
		s.w.ExpireSession(c.Info().SessionID)
		other := coordtest.Had(s, waits)
		zktest.Receive(s, coordtest.Soon, held.Done(), "the loss")
		require.ErrorIs(s, held.Err(), coord.ErrLost)
		s.release(held, other)
	})
}

func TestTheFirstInTheQueueDiesAndTheNextIsServed(t *testing.T) {
	each(t, func(s scene) {
		held := coordtest.Acquire(s, s.client(1))
		p := s.w.Proxy()
		doomed := s.open(p.Addr())
		first := s.wait(s.Context(), s.of(doomed, 1), 1, 1)
		second := s.wait(s.Context(), s.client(1), 1, 2)
		p.Refuse() // it will not hear of its end for a while
		s.w.ExpireSession(doomed.Info().SessionID)
		s.nodes(s.Queue.Dir, 1)
		s.nodes(s.Leases.Dir, 2)
		s.release(held)
		h := coordtest.Had(s, second)
		require.Empty(s, first, "a dead waiter was served")
		p.Heal()
		s.nodes(s.Queue.Dir, 1)
		require.Empty(s, first)
		s.release(h)
		s.release(coordtest.Had(s, first))
	})
}

func TestAHolderThatIsCutOffLosesItsLeaseBeforeAnotherGetsIt(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		held := coordtest.Acquire(s, s.of(s.open(p.Addr()), 1))
		waits := s.wait(s.Context(), s.client(1), 1, 1)
		p.Blackhole(proxy.Both)
		zktest.Receive(s, coordtest.Soon, held.Done(), "the end of the hold")
		require.Empty(s, waits, "another has the lease before its holder gave it up")
		other := coordtest.Had(s, waits)
		p.Heal()
		s.release(other)
	})
}

func TestAWaiterThatWasCutOffAtItsTurnIsServed(t *testing.T) {
	each(t, func(s scene) {
		held := coordtest.Acquire(s, s.client(1))
		p := s.w.Proxy()
		waits := s.wait(s.Context(), s.of(s.open(p.Addr()), 1), 1, 1)
		p.Refuse()
		require.Positive(s, p.CutAll())
		s.release(held)
		require.Empty(s, waits)
		p.Heal()
		s.release(coordtest.Had(s, waits))
	})
}

func TestALostRequestOrReplyIsMadeGood(t *testing.T) {
	coordtest.Cases(t, proxy.Lost, func(t *testing.T, action proxy.Action) {
		each(t, func(s scene) {
			p := s.w.Proxy()
			sem := s.of(s.open(p.Addr()), 2)
			s.release(coordtest.Acquire(s, sem))
			for _, ops := range [][]int32{append(proxy.Creates, proxy.OpMulti), proxy.Lists} {
				for _, dir := range []string{s.Queue.Dir, s.Leases.Dir} {
					lost := p.Inject(proxy.Fault{On: ops, Path: dir, Do: action})
					group := s.hold(sem, 2)
					require.Equal(s, 1, lost.Fired(), "%v in %s", ops, dir)
					s.nodes(s.Leases.Dir, 2)
					s.nodes(s.Queue.Dir, 0)
					s.release(group)
				}
			}
			h := coordtest.Acquire(s, sem)
			lost := p.Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.Leases.Dir, Do: action})
			s.release(h)
			require.Equal(s, 1, lost.Fired())
			s.nodes(s.Leases.Dir, 0)
		})
	})
}

// The first in the queue gives up in the moment of its grant, or just before.
func TestContextsThatEndAtAnyMomentLeaveNoLeaseBehind(t *testing.T) {
	each(t, func(s scene) {
		sem := s.client(2)
		for i := range 40 {
			ctx, cancel := context.WithTimeout(s.Context(), time.Duration(i)*50*time.Microsecond)
			if group, err := sem.AcquireN(ctx, 2); err == nil {
				s.release(group)
			} else {
				require.ErrorIs(s, err, context.DeadlineExceeded)
			}
			cancel()
		}
		s.nodes(s.Queue.Dir, 0)
		s.nodes(s.Leases.Dir, 0)
	})
}

func TestAClosedClientEndsItsWaits(t *testing.T) {
	s := onEmbedded(t)
	held := coordtest.Acquire(s, s.client(1))
	c := s.open(s.w.ConnectString())
	first := s.wait(s.Context(), s.of(c, 1), 1, 1)
	second := s.wait(s.Context(), s.of(c, 1), 1, 2)
	require.NoError(s, c.Close(context.Background()))
	for _, waits := range []<-chan grant{first, second} {
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, waits, "the end of the wait").Err, coord.ErrClosed)
	}
	s.release(held)
}

func TestLeasesAreRefusedNearTheEndOfTheSequenceNumbers(t *testing.T) {
	s := onEmbedded(t)
	sem := s.client(3)
	s.release(coordtest.Acquire(s, sem))
	require.NoError(s, s.w.Embedded().SetSequence(s.Leases.Dir, 2147483600))
	require.ErrorIs(s, coordtest.Err(sem.AcquireN(coordtest.Limited(s), 2)), coord.ErrSequenceExhausted)
	require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrSequenceExhausted)
	s.nodes(s.Leases.Dir, 0)
	s.nodes(s.Queue.Dir, 0)
}

func TestTheDirectoriesMayBeReapedMeanwhile(t *testing.T) {
	s := onEmbedded(t)
	sem, last := s.client(1), int64(0)
	for range 3 {
		h := coordtest.Acquire(s, sem)
		require.Greater(s, h.Token(), last, "tokens grow though the numbers begin anew")
		last = h.Token()
		s.release(h)
		s.nodes(s.Queue.Dir, 0)
		require.Positive(s, s.w.Embedded().Reap())
	}
	require.Equal(s, 1, coordtest.Call(s, sem.Limit), "the limit is kept")
}

// Kazoo counts the leases, makes its own, and does not count again.
func TestAnAcquireThatLosesItsPlaceInTheQueueDoesNotHoldBesideKazoo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		s := newScene(t, w, coord.Kazoo)
		s.release(coordtest.Acquire(s, s.client(1)))
		goOn, p := make(chan struct{}), w.Proxy()
		held := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.Queue.Dir, Do: proxy.Hold(goOn)})
		granted := acquireN(s.Context(), s.of(s.open(p.Addr()), 1), 1)
		zktest.Receive(s, coordtest.Soon, held.First(), "our lease is made and counted")
		require.NoError(s, w.Admin().Delete(s.Queue.Dir+"/"+coordtest.Children(s, w, s.Queue.Dir)[0], -1))
		kazoo, err := w.Admin().Create(s.Leases.Dir+"/0123456789abcdef0123456789abcdef", nil, zk.FlagEphemeral,
			zk.WorldACL(zk.PermAll))
		require.NoError(s, err)
		close(goOn)
		s.nodes(s.Queue.Dir, 1)
		s.nodes(s.Leases.Dir, 2)
		require.Empty(s, granted, "two hold")
		require.NoError(s, w.Admin().Delete(kazoo, -1))
		s.release(coordtest.Had(s, granted))
	})
}
