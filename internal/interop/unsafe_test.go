package interop

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// Locks that break by themselves. A claim of this module in the same place does
// not: who comes behind a holder waits for it.

// described returns a mutex of a client of its own.
func described(t *testing.T, w *zktest.World, path string, d coord.Dialect) *lock.Mutex {
	t.Helper()
	m, err := lock.New(openAs(t, w, coord.Curator), path+"/lock", lock.Dialect(d))
	require.NoError(t, err)
	require.NoError(t, m.Client().EnsureDir(patient(t), m.Path()))
	return m
}

// waits starts to acquire, and returns once n are in line.
func waits(t *testing.T, w *zktest.World, path string, m *lock.Mutex, n int) <-chan coordtest.Outcome[*coord.Hold] {
	t.Helper()
	waiting := coordtest.Begin(patient(t), m.Acquire)
	awaitLine(t, w.Admin(), path, n)
	return waiting
}

// contendByProxy starts a contender, which begins.
func contendByProxy(t *testing.T, w *zktest.World, p Program, path string, extra ...string) contender {
	t.Helper()
	args := append(contenderArgs(w, path, "theirs"), extra...)
	args[0] = w.ProxyConnectString()
	c := contender{p.Start(t, args...), "theirs"}
	c.wants(t, "ready")
	return c
}

// isFirst requires that a hold lasts, and that nobody stands before it.
func isFirst(t *testing.T, m *lock.Mutex, h *coord.Hold) {
	t.Helper()
	require.NoError(t, h.Err())
	line, err := m.Contenders(patient(t))
	require.NoError(t, err)
	require.Equal(t, h.Node(), line[0].Node)
}

// A lock that does not look again after its wait takes the end of the waiter
// before it for the end of the holder.
func TestALockThatDoesNotLookAgainHoldsBesideOursWhichDoes(t *testing.T) {
	theirs := Java(t, "HandmadeHold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		first, last := described(t, w, path, coord.Named("jobs")), described(t, w, path, coord.Named("jobs"))
		h, err := first.Acquire(patient(t))
		require.NoError(t, err)
		leaving := func(n int) (node string, leave func()) {
			node, err := w.Admin().Create(path+"/lock/jobs_lock_", nil, zk.FlagEphemeral|zk.FlagSequence,
				zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			awaitLine(t, w.Admin(), path, n)
			return node, func() { require.NoError(t, w.Admin().Delete(node, -1)) }
		}
		before, leave := leaving(2)
		c := contendByProxy(t, w, theirs, path, "jobs_lock_", "trusting")
		watch := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpExists}, Path: before, Do: proxy.WatchReply})
		c.Send("acquire 60000")
		zktest.Receive(t, answersWithin, watch.First(), "it watches")
		_, leaveToo := leaving(4)
		waiting := waits(t, w, path, last, 5)

		leave()
		c.wants(t, "held")
		isFirst(t, first, h)
		leaveToo()
		c.must(t, "release", "released")
		awaitLine(t, w.Admin(), path, 2)
		require.Empty(t, waiting, "ours looks again")
		require.NoError(t, h.Release(patient(t)))
		require.NoError(t, coordtest.Had(t, waiting).Release(patient(t)))
		c.quit(t)
	})
}

// A lock that orders whole names, with the session in front, comes before
// whoever has a younger session.
func TestALockThatSortsBySessionHoldsBesideOursWhichSortsByNumber(t *testing.T) {
	theirs := Java(t, "HandmadeHold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		older := described(t, w, path, coord.ZooKeeper)
		c := contend(t, w, theirs, path, "theirs", "x-{session}-", "by-name")
		c.wants(t, "ready")
		younger := described(t, w, path, coord.ZooKeeper)
		h, err := younger.Acquire(patient(t))
		require.NoError(t, err)
		c.must(t, "acquire 60000", "held")
		isFirst(t, younger, h)

		waiting := waits(t, w, path, older, 3)
		require.Less(t, older.Client().Info().SessionID, younger.Client().Info().SessionID)
		require.NoError(t, h.Release(patient(t)))
		awaitLine(t, w.Admin(), path, 2)
		pause(t)
		require.Empty(t, waiting, "theirs holds, and came first")
		c.must(t, "release", "released")
		require.NoError(t, coordtest.Had(t, waiting).Release(patient(t)))
		c.quit(t)
	})
}

// ZooKeeper's own lock waits for ever where its predecessor goes between its
// listing and its watch. Ours wait behind it, for it is the first.
func TestZooKeepersOwnLockMissesTheEndOfItsPredecessor(t *testing.T) {
	theirs := Java(t, "WriteLockHold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		first, last := described(t, w, path, coord.ZooKeeper), described(t, w, path, coord.ZooKeeper)
		h, err := first.Acquire(patient(t))
		require.NoError(t, err)
		c := contendByProxy(t, w, theirs, path)
		goOn := make(chan struct{})
		watch := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpExists}, Path: h.Node(), Do: proxy.Hold(goOn)})
		c.Send("acquire 1000")
		zktest.Receive(t, answersWithin, watch.First(), "it is about to watch")
		waiting := waits(t, w, path, last, 3)
		require.NoError(t, h.Release(patient(t)))
		close(goOn)
		c.wants(t, "busy")
		require.Empty(t, waiting)
		c.must(t, "acquire 1000", "held") // asked again
		c.must(t, "release", "released")
		require.NoError(t, coordtest.Had(t, waiting).Release(patient(t)))
		c.quit(t)
	})
}
