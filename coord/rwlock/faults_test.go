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

func TestAWaiterThatLosesItsNodeOrItsSessionJoinsAgain(t *testing.T) {
	for name, lose := range map[string]func(s scene, c *coord.Client, node string){
		"node":    func(s scene, _ *coord.Client, node string) { require.NoError(s, s.w.Admin().Delete(node, -1)) },
		"session": func(s scene, c *coord.Client, _ string) { s.w.ExpireSession(c.Info().SessionID) },
	} {
		t.Run(name, func(t *testing.T) {
			sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
				h := coordtest.Acquire(s.T, s.lock().WriteSide())
				c := coordtest.Open(s.T, s.w.ConnectString())
				waiter := s.joins(side(rw(s.T, c, s.path)))
				old, line := c.Info().SessionID, s.line()
				s.watch(line, 1)
				lose(s, c, s.path+"/"+line[1])
				zktest.Eventually(s, coordtest.Soon, func() bool { now := s.line(); return len(now) == 2 && now[1] != line[1] },
					"it joins again")
				waiting(s.T, waiter)
				release(s.T, h)
				got := coordtest.Had(s.T, waiter)
				require.Equal(s, name == "session", got.Session() != old)
				release(s.T, got)
			})
		})
	}
}

// TestAnAcquireEndsWithItsContextAtEveryPoint holds one request after the other
// on its way, with no answer from a server, and lets the context end there.
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
				done := coordtest.Begin(ctx, side(rw(s.T, c, s.path)).Acquire)
				zktest.Receive(s, coordtest.Soon, held.First(), "the request is sent")
				waiting(s.T, done)
				cancel()
				g := zktest.Receive(s, coordtest.Soon, done, "the acquire ends while no server answers")
				require.ErrorIs(s, g.Err, context.Canceled)
				require.Nil(s, g.Value)
				close(arrive)
				coordtest.AwaitChildren(s, s.w, s.path, 1)
				release(s.T, h)
				coordtest.AwaitChildren(s, s.w, s.path, 0)
			})
		})
	}
	t.Run("wait", func(t *testing.T) {
		sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
			h := coordtest.Acquire(s.T, s.lock().WriteSide())
			ctx, cancel := context.WithCancel(coordtest.Limited(s.T))
			done := s.queue(ctx, side(s.lock()))
			s.watch(s.line(), 1)
			cancel()
			require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, done, "the acquire ends").Err, context.Canceled)
			coordtest.AwaitChildren(s, s.w, s.path, 1)
			release(s.T, h)
		})
	})
}

func TestAContenderThatCannotBeHonouredIsRefused(t *testing.T) {
	coordtest.Cases(t, map[string]string{
		"the other dialect": "0123456789abcdef0123456789abcdef__rlock__0000000000",
		"another recipe":    "_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000",
	}, func(t *testing.T, node string) {
		sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
			l := s.lock()
			release(s.T, coordtest.Acquire(s.T, l.ReadSide())) // makes the directory
			require.NoError(s,
				coordtest.Err(s.w.Admin().Create(s.path+"/"+node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
			_, err := side(l).Acquire(coordtest.Limited(s.T))
			require.ErrorIs(s, err, coord.ErrForeign)
			require.ErrorContains(s, err, node)
			require.ErrorIs(s, coordtest.Err(side(l).TryAcquire(coordtest.Limited(s.T))), coord.ErrForeign)
			require.Equal(s, []string{node}, s.line())
			require.NoError(s, s.w.Admin().Delete(s.path+"/"+node, -1))
		})
	})
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
		r := coordtest.Call(s, downgraded(h))
		require.Regexp(s, "/[0-9a-f]{32}__rlock__0000000000$", r.Node())
		also := coordtest.Had(s.T, reader)
		s.watch(s.line(), 1, 2, 3)
		waiting(s.T, writer, last)
		release(s.T, r, also)
		m := mutex(s.T, coordtest.Open(s.T, s.w.ConnectString(), coord.WithDialect(coord.Kazoo)), s.path)
		require.ErrorIs(s, coordtest.Err(m.TryAcquire(coordtest.Limited(s.T))), coord.ErrBusy)
		s.inTurn(writer, last)
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
		reads := coordtest.Had(s.T, reader)
		release(s.T, reads)
		require.ErrorIs(s, coordtest.Err(s.lock().TryAcquireWrite(coordtest.Limited(s.T))), coord.ErrBusy)
		waiting(s.T, writer)
		require.NoError(s, s.w.Admin().Delete(tied, -1))
		release(s.T, coordtest.Had(s.T, writer))
	})
}
