package rwlock_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// sides runs f for each side, with a holder that the side waits for.
func sides(t *testing.T, f func(s scene, side func(*rwlock.Lock) *rwlock.Side)) {
	t.Helper()
	t.Run("read", func(t *testing.T) { each(t, func(s scene) { f(s, (*rwlock.Lock).ReadSide) }) })
	t.Run("write", func(t *testing.T) { each(t, func(s scene) { f(s, (*rwlock.Lock).WriteSide) }) })
}

// rejoined waits until the second in line stands there with another node.
func (s scene) rejoined(line []string) {
	s.Helper()
	zktest.Eventually(s, coordtest.Soon, func() bool { now := s.line(); return len(now) == 2 && now[1] != line[1] }, "it joins again")
}

func TestAWaiterWhoseNodeIsDeletedJoinsAgain(t *testing.T) {
	sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		waiter := s.joins(side(s.lock()))
		line := s.line()
		s.watch(line, 1)
		require.NoError(s, s.w.Admin().Delete(s.path+"/"+line[1], -1))
		s.rejoined(line)
		waiting(s.T, waiter)
		release(s.T, h)
		release(s.T, turn(s.T, waiter))
	})
}

func TestAWaiterWhoseSessionExpiresJoinsAgainInAnother(t *testing.T) {
	sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		c := coordtest.Open(s.T, s.w.ConnectString())
		waiter := s.joins(side(rw(s.T, c, s.path)))
		old := c.SessionID()
		line := s.line()
		s.watch(line, 1)
		s.w.ExpireSession(old)
		s.rejoined(line)
		release(s.T, h)
		got := turn(s.T, waiter)
		require.NotEqual(s, old, got.Session())
		release(s.T, got)
	})
}

func TestAHoldOfAnExpiredSessionIsLostAndTheNextHolds(t *testing.T) {
	sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
		l := s.lock()
		h := coordtest.Acquire(s.T, side(l))
		next := s.joins(s.lock().WriteSide())
		s.w.ExpireSession(h.Session())
		zktest.Receive(s, coordtest.Soon, h.Done(), "the loss")
		require.ErrorIs(s, h.Err(), coord.ErrLost)
		got := turn(s.T, next)
		require.Greater(s, got.Token(), h.Token())
		require.NoError(s, h.Release(coordtest.Limited(s.T)))
		release(s.T, got)
		release(s.T, coordtest.Acquire(s.T, side(l))) // the lock is usable again
	})
}

func TestAWaiterThatIsCutOffAsItsTurnComesLooksAgain(t *testing.T) {
	sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		c := coordtest.Open(s.T, s.w.ProxyConnectString())
		waiter := s.joins(side(rw(s.T, c, s.path)))
		s.watch(s.line(), 0, 1)
		cut := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpNotification}, Path: s.path, Do: proxy.CutOnReply})
		release(s.T, h)
		release(s.T, turn(s.T, waiter))
		require.Equal(s, 1, cut.Fired())
	})
}

func TestAClaimWhoseReplyIsLostIsMadeOnce(t *testing.T) {
	sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
		release(s.T, coordtest.Acquire(s.T, s.lock().WriteSide())) // makes the directory
		c := coordtest.Open(s.T, s.w.ProxyConnectString())
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpCreate}, Path: s.path, Do: proxy.CutOnReply})
		h := coordtest.Acquire(s.T, side(rw(s.T, c, s.path)))
		require.Equal(s, 1, lost.Fired())
		require.Len(s, s.line(), 1)
		gone := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.path, Do: proxy.CutOnReply})
		release(s.T, h)
		require.Equal(s, 1, gone.Fired())
		require.Empty(s, s.line())
	})
}

// TestAnAcquireEndsWithItsContextAtEveryPoint holds one request after the other
// on its way, so that no server answers, and lets the context end there.
func TestAnAcquireEndsWithItsContextAtEveryPoint(t *testing.T) {
	points := map[string]int32{"create": proxy.OpCreate, "list": proxy.OpGetChildren2, "watch": proxy.OpGetData}
	for name, op := range points {
		t.Run(name, func(t *testing.T) {
			sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
				h := coordtest.Acquire(s.T, s.lock().WriteSide())
				c := coordtest.Open(s.T, s.w.ProxyConnectString())
				arrive := make(chan struct{})
				held := s.w.Proxy().Inject(proxy.Fault{On: []int32{op}, Path: s.path, Do: proxy.Hold(arrive)})
				ctx, cancel := context.WithCancel(coordtest.Limited(s.T))
				done := make(chan grant, 1)
				go func() {
					h, err := side(rw(s.T, c, s.path)).Acquire(ctx)
					done <- grant{h, err}
				}()
				zktest.Receive(s, coordtest.Soon, held.First(), "the request is sent")
				waiting(s.T, done)
				cancel()
				g := zktest.Receive(s, coordtest.Soon, done, "the acquire ends while no server answers")
				require.ErrorIs(s, g.err, context.Canceled)
				require.Nil(s, g.hold)
				close(arrive)
				lined(s.T, s.w, s.path, 1)
				release(s.T, h)
				zktest.Eventually(s, coordtest.Soon, func() bool { return len(s.line()) == 0 }, "nothing is left")
			})
		})
	}
	t.Run("wait", func(t *testing.T) {
		sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
			h := coordtest.Acquire(s.T, s.lock().WriteSide())
			ctx, cancel := context.WithCancel(coordtest.Limited(s.T))
			done := queue(s.T, s.w, ctx, s.path, 2, side(s.lock()))
			s.watch(s.line(), 1)
			cancel()
			require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, done, "the acquire ends").err, context.Canceled)
			lined(s.T, s.w, s.path, 1)
			release(s.T, h)
		})
	})
}

func TestAContenderThatCannotBeHonouredIsRefused(t *testing.T) {
	for name, node := range map[string]string{
		"the other dialect": "0123456789abcdef0123456789abcdef__rlock__0000000000",
		"another recipe":    "_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000",
	} {
		t.Run(name, func(t *testing.T) {
			sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
				l := s.lock()
				release(s.T, coordtest.Acquire(s.T, l.ReadSide())) // makes the directory
				require.NoError(s, coordtest.Err(s.w.Admin().Create(s.path+"/"+node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
				_, err := side(l).Acquire(coordtest.Limited(s.T))
				require.ErrorIs(s, err, coord.ErrForeign)
				require.ErrorContains(s, err, node)
				require.ErrorIs(s, coordtest.Err(side(l).TryAcquire(coordtest.Limited(s.T))), coord.ErrForeign)
				require.Equal(s, []string{node}, s.line())
				require.NoError(s, s.w.Admin().Delete(s.path+"/"+node, -1))
			})
		})
	}
}

func TestTheKazooDialectHasTheNamesOfItsReadAndWriteLocks(t *testing.T) {
	each(t, func(s scene) {
		lock := func() *rwlock.Lock {
			return rw(s.T, coordtest.Open(s.T, s.w.ConnectString(), coord.WithDialect(coord.Kazoo)), s.path)
		}
		h := coordtest.Acquire(s.T, lock().WriteSide())
		reader, writer := s.joins(lock().ReadSide()), s.joins(lock().WriteSide())
		last := s.joins(lock().ReadSide())
		line := s.line()
		for i, want := range []string{"__lock__", "__rlock__", "__lock__", "__rlock__"} {
			require.Regexp(s, "^[0-9a-f]{32}"+want+"000000000"+string(rune('0'+i))+"$", line[i])
		}
		r, err := h.Downgrade(coordtest.Limited(s.T))
		require.NoError(s, err)
		require.Regexp(s, "/[0-9a-f]{32}__rlock__0000000000$", r.Node())
		also := turn(s.T, reader)
		s.watch(s.line(), 1, 2, 3)
		waiting(s.T, writer, last)
		release(s.T, r, also)
		m := mutex(s.T, coordtest.Open(s.T, s.w.ConnectString(), coord.WithDialect(coord.Kazoo)), s.path)
		require.ErrorIs(s, coordtest.Err(m.TryAcquire(coordtest.Limited(s.T))), coord.ErrBusy)
		release(s.T, turn(s.T, writer))
		release(s.T, turn(s.T, last))
	})
}

// TestAReadNodeAtAWritersPlaceIsHonoured is about Curator's way to downgrade:
// there, both nodes exist for a while, with the same number.
func TestAReadNodeAtAWritersPlaceIsHonoured(t *testing.T) {
	each(t, func(s scene) {
		h := coordtest.Acquire(s.T, s.lock().WriteSide())
		tied := s.path + "/_c_01234567-89ab-4def-8123-456789abcdef-__READ__" + digits(h.Node())
		require.NoError(s, coordtest.Err(s.w.Admin().Create(tied, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
		reader, writer := s.joins(s.lock().ReadSide()), s.joins(s.lock().WriteSide())
		s.watch(s.line(), 2, 3)
		waiting(s.T, reader, writer)
		require.NoError(s, h.Err())
		release(s.T, h)
		reads := turn(s.T, reader)
		release(s.T, reads)
		require.ErrorIs(s, coordtest.Err(s.lock().TryAcquireWrite(coordtest.Limited(s.T))), coord.ErrBusy)
		waiting(s.T, writer)
		require.NoError(s, s.w.Admin().Delete(tied, -1))
		release(s.T, turn(s.T, writer))
	})
}
