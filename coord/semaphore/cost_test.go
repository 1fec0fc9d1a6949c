package semaphore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// counted is a scene whose sessions send nothing by themselves for a while.
func counted(t *testing.T) (s scene, open func() *coord.Client, spent func(*coord.Client, func()) zkembed.Counts) {
	s = scene{t, zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour)), coord.Curator}
	s.w.SetTimeout(time.Minute)
	open = func() *coord.Client { return s.open(s.w.ConnectString(), coord.WithSessionTimeout(time.Minute)) }
	spent = func(c *coord.Client, f func()) zkembed.Counts {
		before := s.w.Embedded().SessionCounts(c.SessionID())
		f()
		return s.w.Embedded().SessionCounts(c.SessionID()).Since(before)
	}
	return s, open, spent
}

func TestWhatASemaphoreCosts(t *testing.T) {
	s, open, spent := counted(t)
	c := open()
	sem := s.of(c, 5)
	s.release(s.acquire(sem)) // makes the directories and watches the limit
	s.nodes(s.queue(), 0)
	const cycles = 50
	counts := spent(c, func() {
		for range cycles {
			s.release(s.acquire(sem))
		}
		s.nodes(s.queue(), 0)
	})
	t.Log(counts)
	require.Equal(s, 2*cycles, counts[zkembed.OpCreate])
	require.Equal(s, 2*cycles, counts[zkembed.OpDelete])
	require.Equal(s, 2*cycles, counts[zkembed.OpGetChildren2])
	require.Equal(s, 6*cycles, counts.Total()-counts[zkembed.OpGetData])
	// A hold that a busy machine keeps for more than 20 ms reads its own node.
	require.LessOrEqual(s, counts[zkembed.OpGetData], 2*cycles)

	counts = spent(c, func() {
		group, err := sem.AcquireN(coordtest.Limited(s), 5)
		require.NoError(s, err)
		s.release(group)
		s.nodes(s.queue(), 0)
	})
	require.Equal(s, 6, counts[zkembed.OpCreate])
	require.Equal(s, 6, counts[zkembed.OpDelete])
	require.Equal(s, 2, counts[zkembed.OpGetChildren2])
	require.LessOrEqual(s, counts.Total(), 14+6)

	group, err := s.client(5).AcquireN(coordtest.Limited(s), 5)
	require.NoError(s, err)
	counts = spent(c, func() {
		require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrBusy)
	})
	require.Equal(s, zkembed.Counts{zkembed.OpGetChildren2: 1}, counts)
	s.release(group)
}

func TestKazoosLayoutCostsOneRequestMore(t *testing.T) {
	s, _, spent := counted(t)
	s.dialect = coord.Kazoo
	c := s.open(s.w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	sem := s.of(c, 5)
	s.release(s.acquire(sem))
	s.nodes(s.queue(), 0)
	counts := spent(c, func() {
		s.release(s.acquire(sem))
		s.nodes(s.queue(), 0)
	})
	require.Equal(s, 1, counts[zkembed.OpMulti], "whether the place in the queue is still there")
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
	s, open, spent := counted(t)
	held, err := s.of(open(), 3).AcquireN(coordtest.Limited(s), 3)
	require.NoError(s, err)
	var clients []*coord.Client
	var waits []<-chan grant
	for i := range 6 {
		clients = append(clients, open())
		waits = append(waits, s.wait(s.Context(), s.of(clients[i], 3), 2, i+1))
	}
	last := clients[5]
	zktest.Eventually(s, coordtest.Soon, func() bool {
		return slices.Contains(s.w.Embedded().Watched(), s.leases()) &&
			s.w.Embedded().SessionCounts(last.SessionID())[zkembed.OpGetData] == 4
	}, "the first watches the leases; the last the limit, its own place, and the two before it")
	var group *coord.Group
	first := spent(clients[0], func() {
		idle := spent(last, func() {
			s.release(held.Holds()[0])
			s.release(held.Holds()[1])
			group = s.granted(waits[0])
		})
		require.Zero(s, idle.Total()+idle[zkembed.OpNotify], "%v", idle)
	})
	require.LessOrEqual(s, first[zkembed.OpGetChildren2], 2, "one listing for each release: %v", first)
	s.release(held, group)
	for _, granted := range waits[1:] {
		s.release(s.granted(granted))
	}
}
