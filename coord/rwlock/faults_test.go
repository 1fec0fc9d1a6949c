package rwlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
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
		"session": func(s scene, c *coord.Client, _ string) { s.w.ExpireSession(c.SessionID()) },
	} {
		t.Run(name, func(t *testing.T) {
			sides(t, func(s scene, side func(*rwlock.Lock) *rwlock.Side) {
				h := coordtest.Acquire(s.T, s.lock().WriteSide())
				c := coordtest.Open(s.T, s.w.ConnectString())
				waiter := s.joins(side(rw(s.T, c, s.path)))
				old, line := c.SessionID(), s.line()
				s.watch(line, 1)
				lose(s, c, s.path+"/"+line[1])
				zktest.Eventually(s, coordtest.Soon, func() bool { now := s.line(); return len(now) == 2 && now[1] != line[1] }, "it joins again")
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
		r := coordtest.Call(s, h.Downgrade)
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

// embedded returns a scene on a server that counts requests. Its sessions last
// so long that no probe and no ping gets into the count.
func embedded(t *testing.T) scene {
	t.Helper()
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	w.SetTimeout(time.Hour)
	return scene{t, w, w.Path("lock")}
}

// counted is a client whose requests are counted.
type counted struct {
	*coord.Client
	*rwlock.Lock
	s      scene
	before zkembed.Counts
}

func (s scene) counted() *counted {
	s.Helper()
	c := coordtest.Open(s.T, s.w.ConnectString(), coord.WithSessionTimeout(time.Hour))
	return &counted{c, rw(s.T, c, s.path), s, s.w.Embedded().SessionCounts(c.SessionID())}
}

// since returns what the client has requested since the last call.
func (c *counted) since() zkembed.Counts {
	c.s.Helper()
	now := c.s.w.Embedded().SessionCounts(c.SessionID())
	defer func() { c.before = now }()
	return now.Since(c.before)
}

// watches waits until the client has n watches.
func (c *counted) watches(n int) {
	c.s.Helper()
	zktest.Eventually(c.s, coordtest.Soon, func() bool {
		return slices.ContainsFunc(c.s.w.Embedded().Sessions(), func(session zkembed.SessionInfo) bool {
			return session.ID == c.SessionID() && session.Watches == n
		})
	}, "%d watches", n)
}

// waits joins the line and returns when the claim waits.
func (c *counted) waits(side *rwlock.Side) <-chan grant {
	c.s.Helper()
	granted := c.s.joins(side)
	c.watches(2) // our node, and one other
	return granted
}

func TestAnUncontendedHoldIsThreeRequests(t *testing.T) {
	s := embedded(t)
	release(t, coordtest.Acquire(t, s.lock().ReadSide())) // makes the directory
	const cycles = 50
	for _, side := range []func(*rwlock.Lock) *rwlock.Side{(*rwlock.Lock).ReadSide, (*rwlock.Lock).WriteSide} {
		c := s.counted()
		for range cycles {
			release(t, coordtest.Acquire(t, side(c.Lock)))
		}
		made := c.since()
		require.Equal(t, cycles, made[zkembed.OpCreate], "%v", made)
		require.Equal(t, cycles, made[zkembed.OpGetChildren2], "%v", made)
		require.Equal(t, cycles, made[zkembed.OpDelete], "%v", made)
		require.Equal(t, 3*cycles, made.Total()-made[zkembed.OpGetData], "%v", made)
		// A hold that a busy machine keeps for more than 20 ms reads its own
		// node.
		require.LessOrEqual(t, made[zkembed.OpGetData], cycles, "%v", made)
	}
}

func TestAReaderThatWaitsMakesSixRequestsAndIsWokenOnce(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().WriteSide())
	first, second := s.joins(s.lock().WriteSide()), s.joins(s.lock().WriteSide())
	c := s.counted()
	reader := c.waits(c.ReadSide())
	made := c.since()
	require.Equal(t, zkembed.Counts{zkembed.OpCreate: 1, zkembed.OpGetChildren2: 1, zkembed.OpGetData: 2}, made)
	release(t, h)
	release(t, coordtest.Had(t, first))
	holds := coordtest.Had(t, second)
	require.Zero(t, c.since().Total(), "the writers before the nearest are not its business")
	release(t, holds)
	reads := coordtest.Had(t, reader)
	require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1}, c.since())
	release(t, reads)
	require.Equal(t, zkembed.Counts{zkembed.OpDelete: 1, zkembed.OpNotify: 1}, c.since(), "the event is our node's")
}

func TestAReleaseWakesOnlyThoseWhoseTurnComes(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().WriteSide())
	var readers []*counted
	var turns []<-chan grant
	for range 4 {
		c := s.counted()
		readers, turns = append(readers, c), append(turns, c.waits(c.ReadSide()))
	}
	writer, last := s.counted(), s.counted()
	writes, reads := writer.waits(writer.WriteSide()), last.waits(last.ReadSide())
	before := s.w.Embedded().Counts()
	for _, c := range append(readers, writer, last) {
		c.since()
	}
	release(t, h)
	var held []*coord.Hold
	for i, c := range readers {
		held = append(held, coordtest.Had(t, turns[i]))
		require.Equal(t, zkembed.Counts{zkembed.OpNotify: 1, zkembed.OpGetChildren2: 1}, c.since())
	}
	require.Equal(t, len(readers)+1, s.w.Embedded().Counts().Since(before)[zkembed.OpNotify], "and the holder hears of its own node")
	release(t, held[:3]...)
	require.Zero(t, writer.since().Total()+last.since().Total(), "readers that leave early wake no waiter")
	release(t, held[3])
	holds := coordtest.Had(t, writes)
	require.Equal(t, 1, writer.since()[zkembed.OpNotify])
	require.Zero(t, last.since().Total())
	release(t, holds)
	release(t, coordtest.Had(t, reads))
}

func TestABusyTryIsOneReadAndARefusalNone(t *testing.T) {
	s := embedded(t)
	h := coordtest.Acquire(t, s.lock().ReadSide())
	c := s.counted()
	require.ErrorIs(t, coordtest.Err(c.TryAcquireWrite(coordtest.Limited(t))), coord.ErrBusy)
	require.Equal(t, zkembed.Counts{zkembed.OpGetChildren2: 1}, c.since())
	mine := coordtest.Acquire(t, c.ReadSide())
	c.watches(1) // our node's, which every hold that lasts has
	c.since()
	require.ErrorIs(t, coordtest.Err(c.AcquireWrite(mine.Context(coordtest.Limited(t)))), coord.ErrInvalid)
	again := rw(t, c.Client, s.path, rwlock.Reentrant())
	inner, err := again.AcquireRead(mine.Context(coordtest.Limited(t)))
	require.NoError(t, err)
	require.Zero(t, c.since().Total())
	release(t, inner, mine, h)
}

func TestADowngradeIsOneRequest(t *testing.T) {
	s := embedded(t)
	c := s.counted()
	h := coordtest.Acquire(t, c.WriteSide())
	c.watches(1)
	c.since()
	r := coordtest.Call(s, h.Downgrade)
	made := c.since()
	require.Equal(t, 1, made[zkembed.OpMulti], "%v", made)
	require.LessOrEqual(t, made.Total(), 2, "the read of our node may have come already: %v", made)
	_, dir, err := s.w.Admin().Get(s.path)
	require.NoError(t, err)
	_, node, err := s.w.Admin().Get(r.Node())
	require.NoError(t, err)
	require.Equal(t, node.Czxid, dir.Pzxid, "one change of the line: the one node came when the other went")
	s.isReader(r, "0000000000")
	release(t, r)
}
