package semaphore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// counted is a scene whose sessions send nothing by themselves for a while.
func counted(t *testing.T, d coord.Dialect) scene {
	s := newScene(t, zktest.NewEmbedded(t), d)
	s.w.SetTimeout(time.Minute)
	return s
}

// quiet returns a client of such a scene.
func (s scene) quiet() *coord.Client {
	return s.open(s.w.ConnectString(), coord.WithSessionTimeout(time.Minute))
}

// spent returns the requests that a client makes while f runs.
func (s scene) spent(c *coord.Client, f func()) zkembed.Counts {
	return coordtest.Spent(s.w.Embedded(), c, f)
}

func TestWhatASemaphoreCosts(t *testing.T) {
	s := counted(t, coord.Curator)
	c := s.quiet()
	sem := s.of(c, 5)
	s.release(coordtest.Acquire(s, sem)) // makes the directories and watches the limit
	s.nodes(s.Queue.Dir, 0)
	const cycles = 50
	counts := s.spent(c, func() {
		for range cycles {
			s.release(coordtest.Acquire(s, sem))
		}
		s.nodes(s.Queue.Dir, 0)
	})
	t.Log(counts)
	require.Equal(s, 2*cycles, counts[zkembed.OpCreate])
	require.Equal(s, 2*cycles, counts[zkembed.OpDelete])
	require.Equal(s, 2*cycles, counts[zkembed.OpGetChildren2])
	require.Equal(s, 6*cycles, counts.Total()-counts[zkembed.OpGetData])
	// A hold that a busy machine keeps for more than 20 ms reads its own node.
	require.LessOrEqual(s, counts[zkembed.OpGetData], 2*cycles)

	counts = s.spent(c, func() {
		group := s.hold(sem, 5)
		s.release(group)
		s.nodes(s.Queue.Dir, 0)
	})
	require.Equal(s, 6, counts[zkembed.OpCreate])
	require.Equal(s, 6, counts[zkembed.OpDelete])
	require.Equal(s, 2, counts[zkembed.OpGetChildren2])
	require.LessOrEqual(s, counts.Total(), 14+6)

	group := s.hold(s.client(5), 5)
	counts = s.spent(c, func() {
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
	})
	require.Equal(s, zkembed.Counts{zkembed.OpGetChildren2: 1}, counts)
	s.release(group)
}

func TestKazoosLayoutCostsOneRequestMore(t *testing.T) {
	s := counted(t, coord.Kazoo)
	c := s.quiet()
	sem := s.of(c, 5)
	s.release(coordtest.Acquire(s, sem))
	s.nodes(s.Queue.Dir, 0)
	counts := s.spent(c, func() {
		s.release(coordtest.Acquire(s, sem))
		s.nodes(s.Queue.Dir, 0)
	})
	require.Equal(s, 2, counts[zkembed.OpMulti], "the lease, and whether the place in the queue is still there")
	require.LessOrEqual(s, counts.Total()-counts[zkembed.OpGetData], 7, "%v", counts)
}

// In virtual time only what is delayed takes time: the replies to creates, with
// what stands behind them, and to deletes.
func TestAnAcquireWaitsForTwoCreatesAndForNoDelete(t *testing.T) {
	inBubble(t, func(b bubble) {
		sem := b.semaphore(2)
		h := coordtest.Acquire(b, sem)
		require.NoError(b, h.Release(b.Context()))
		const way = 100 * time.Millisecond
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpDelete}}, zkembed.DelayReply(way))
		begun := time.Now()
		h = coordtest.Acquire(b, sem)
		require.Equal(b, 2*way, time.Since(begun))
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestOnlyTheFirstInTheQueueIsWokenByARelease(t *testing.T) {
	s := counted(t, coord.Curator)
	held := s.hold(s.of(s.quiet(), 3), 3)
	var clients []*coord.Client
	var waits []<-chan grant
	for i := range 6 {
		clients = append(clients, s.quiet())
		waits = append(waits, s.wait(s.Context(), s.of(clients[i], 3), 2, i+1))
	}
	last := clients[5]
	zktest.Eventually(s, coordtest.Soon, func() bool {
		return slices.Contains(s.w.Embedded().Watched(), s.Leases.Dir) &&
			s.w.Embedded().SessionCounts(last.Info().SessionID)[zkembed.OpGetData] == 4
	}, "the first watches the leases; the last the limit, its own place, and the two before it")
	var group *hold.Set
	first := s.spent(clients[0], func() {
		idle := s.spent(last, func() {
			s.release(held.Holds()[0])
			s.release(held.Holds()[1])
			group = coordtest.Had(s, waits[0])
		})
		require.Zero(s, idle.Total()+idle[zkembed.OpNotify], "%v", idle)
	})
	require.LessOrEqual(s, first[zkembed.OpGetChildren2], 2, "one listing for each release: %v", first)
	s.release(held, group)
	for _, granted := range waits[1:] {
		s.release(coordtest.Had(s, granted))
	}
}
