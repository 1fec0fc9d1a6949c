package semaphore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
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
	var group *recipe.Group
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

// youngest returns the child of a directory that was created last.
func (s scene) youngest(dir string) (node string) {
	s.Helper()
	names, _, err := s.w.Admin().Children(dir)
	require.NoError(s, err)
	newest := int64(0)
	for _, name := range names {
		_, stat, err := s.w.Admin().Get(dir + "/" + name)
		require.NoError(s, err)
		if stat.Czxid > newest {
			node, newest = dir+"/"+name, stat.Czxid
		}
	}
	return node
}

func TestAWaiterWhoseNodesAreDeletedQueuesAgain(t *testing.T) {
	for _, which := range []string{"lease", "place in the queue"} {
		t.Run(which, func(t *testing.T) {
			each(t, func(s scene) {
				sem := s.client(1)
				held := s.acquire(sem)
				first := s.wait(s.Context(), s.client(1), 1, 1)
				second := s.wait(s.Context(), s.client(1), 1, 2)
				node := s.youngest(s.leases())
				if which != "lease" {
					line, err := sem.Contenders(coordtest.Limited(s))
					require.NoError(s, err)
					node = line[2].Node
				}
				require.NoError(s, s.w.Admin().Delete(node, -1))
				zktest.Eventually(s, coordtest.Soon, func() bool {
					exists, _, err := s.w.Admin().Exists(node)
					require.NoError(s, err)
					queue, _, err := s.w.Admin().Children(s.queue())
					require.NoError(s, err)
					leases, _, err := s.w.Admin().Children(s.leases())
					require.NoError(s, err)
					return !exists && len(queue) == 2 && len(leases) == 2
				}, "both queue again, and one waits for a lease")
				require.Empty(s, first)
				require.Empty(s, second)
				s.release(held)
				s.release(s.granted(second))
				s.release(s.granted(first))
				s.nodes(s.leases(), 0)
			})
		})
	}
}

func TestALeaseWhoseNodeIsDeletedIsLost(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client(2))
		require.NoError(s, s.w.Admin().Delete(h.Node(), -1))
		zktest.Receive(s, coordtest.Soon, h.Done(), "the loss")
		require.ErrorIs(s, h.Err(), coord.ErrNodeDeleted)
		s.release(h)
	})
}

func TestTheLeasesOfADeadSessionAreFree(t *testing.T) {
	each(t, func(s scene) {
		c := s.open(s.w.ConnectString())
		held, err := s.of(c, 3).AcquireN(coordtest.Limited(s), 3)
		require.NoError(s, err)
		waits := s.wait(s.Context(), s.client(3), 2, 1)
		s.w.ExpireSession(c.SessionID())
		other := s.granted(waits)
		zktest.Receive(s, coordtest.Soon, held.Done(), "the loss")
		require.ErrorIs(s, held.Err(), coord.ErrLost)
		s.release(held, other)
	})
}

func TestTheFirstInTheQueueDiesAndTheNextIsServed(t *testing.T) {
	each(t, func(s scene) {
		held := s.acquire(s.client(1))
		p := s.w.Proxy()
		doomed := s.open(p.Addr())
		first := s.wait(s.Context(), s.of(doomed, 1), 1, 1)
		second := s.wait(s.Context(), s.client(1), 1, 2)
		p.Refuse() // it will not hear of its end for a while
		s.w.ExpireSession(doomed.SessionID())
		s.nodes(s.queue(), 1)
		s.nodes(s.leases(), 2)
		s.release(held)
		h := s.granted(second)
		require.Empty(s, first, "a dead waiter was served")
		p.Heal()
		s.nodes(s.queue(), 1)
		require.Empty(s, first)
		s.release(h)
		s.release(s.granted(first))
	})
}

func TestAHolderThatIsCutOffLosesItsLeaseBeforeAnotherGetsIt(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		held := s.acquire(s.of(s.open(p.Addr()), 1))
		waits := s.wait(s.Context(), s.client(1), 1, 1)
		p.Blackhole(proxy.Both)
		select {
		case <-held.Done():
			require.Empty(s, waits, "two hold")
		case <-waits:
			s.Fatal("another has the lease before its holder gave it up")
		case <-coordtest.Limited(s).Done():
			s.Fatal("the hold does not end")
		}
		other := s.granted(waits)
		p.Heal()
		s.release(other)
	})
}

func TestAWaiterThatWasCutOffAtItsTurnIsServed(t *testing.T) {
	each(t, func(s scene) {
		held := s.acquire(s.client(1))
		p := s.w.Proxy()
		waits := s.wait(s.Context(), s.of(s.open(p.Addr()), 1), 1, 1)
		p.Refuse()
		require.Positive(s, p.CutAll())
		s.release(held)
		require.Empty(s, waits)
		p.Heal()
		s.release(s.granted(waits))
	})
}

func TestALostRequestOrReplyIsMadeGood(t *testing.T) {
	for name, action := range map[string]proxy.Action{"reply": proxy.CutOnReply, "request": proxy.DropAndCut} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				p := s.w.Proxy()
				sem := s.of(s.open(p.Addr()), 2)
				s.release(s.acquire(sem))
				for _, ops := range [][]int32{append(proxy.Creates, proxy.OpMulti), proxy.Lists} {
					for _, dir := range []string{s.queue(), s.leases()} {
						lost := p.Inject(proxy.Fault{On: ops, Path: dir, Do: action})
						group, err := sem.AcquireN(coordtest.Limited(s), 2)
						require.NoError(s, err)
						require.Equal(s, 1, lost.Fired(), "%v in %s", ops, dir)
						s.nodes(s.leases(), 2)
						s.nodes(s.queue(), 0)
						s.release(group)
					}
				}
				h := s.acquire(sem)
				lost := p.Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.leases(), Do: action})
				s.release(h)
				require.Equal(s, 1, lost.Fired())
				s.nodes(s.leases(), 0)
			})
		})
	}
}

func TestEveryCallEndsWithItsContextWhenNoServerAnswers(t *testing.T) {
	each(t, func(s scene) {
		sem := s.of(s.open(s.w.Proxy().Addr()), 2)
		s.release(s.acquire(sem))
		// A client knows what it watches without asking.
		one, other := s.of(s.open(s.w.Proxy().Addr()), 2), s.of(s.open(s.w.Proxy().Addr()), 2)
		for name, call := range map[string]func(context.Context) error{
			"acquire":    func(ctx context.Context) error { _, err := sem.Acquire(ctx); return err },
			"try":        func(ctx context.Context) error { _, err := sem.TryAcquire(ctx); return err },
			"many":       func(ctx context.Context) error { _, err := sem.AcquireN(ctx, 2); return err },
			"set limit":  func(ctx context.Context) error { return sem.SetLimit(ctx, 2) },
			"limit":      func(ctx context.Context) error { _, err := one.Limit(ctx); return err },
			"contenders": func(ctx context.Context) error { _, err := other.Contenders(ctx); return err },
		} {
			s.w.Proxy().Blackhole(proxy.Both)
			require.ErrorIs(s, call(coordtest.Within(s, 50*time.Millisecond)), context.DeadlineExceeded, name)
			s.w.Proxy().Heal()
		}
		s.nodes(s.queue(), 0)
		s.nodes(s.leases(), 0)
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
		s.nodes(s.queue(), 0)
		s.nodes(s.leases(), 0)
	})
}

func TestAClosedClientEndsItsWaits(t *testing.T) {
	s := scene{t, zktest.New(t, zktest.Embedded), coord.Curator}
	held := s.acquire(s.client(1))
	c := s.open(s.w.ConnectString())
	first := s.wait(s.Context(), s.of(c, 1), 1, 1)
	second := s.wait(s.Context(), s.of(c, 1), 1, 2)
	require.NoError(s, c.Close(context.Background()))
	for _, waits := range []<-chan grant{first, second} {
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, waits, "the end of the wait").err, coord.ErrClosed)
	}
	s.release(held)
}

func TestLeasesAreRefusedNearTheEndOfTheSequenceNumbers(t *testing.T) {
	s := scene{t, zktest.New(t, zktest.Embedded), coord.Curator}
	sem := s.client(3)
	s.release(s.acquire(sem))
	require.NoError(s, s.w.Embedded().SetSequence(s.leases(), 2147483600))
	require.ErrorIs(s, coordtest.Err(sem.AcquireN(coordtest.Limited(s), 2)), coord.ErrSequenceExhausted)
	require.ErrorIs(s, coordtest.Err(sem.TryAcquire(coordtest.Limited(s))), coord.ErrSequenceExhausted)
	s.nodes(s.leases(), 0)
	s.nodes(s.queue(), 0)
}

func TestAThrottledAcquireIsRepeated(t *testing.T) {
	s := scene{t, zktest.New(t, zktest.Embedded), coord.Curator}
	sem := s.client(2)
	throttle := s.w.Embedded().Inject(zkembed.Match{PathPrefix: s.path(), Times: 5}, zkembed.ReplyError(zkembed.CodeThrottledOp))
	s.release(s.acquire(sem))
	require.Equal(s, 5, throttle.Fired())
}

func TestTheDirectoriesMayBeReapedMeanwhile(t *testing.T) {
	s := scene{t, zktest.New(t, zktest.Embedded), coord.Curator}
	sem, last := s.client(1), int64(0)
	for range 3 {
		h := s.acquire(sem)
		require.Greater(s, h.Token(), last, "tokens grow though the numbers begin anew")
		last = h.Token()
		s.release(h)
		s.nodes(s.queue(), 0)
		require.Positive(s, s.w.Embedded().Reap())
	}
	limit, err := sem.Limit(coordtest.Limited(s))
	require.NoError(s, err, "the limit is kept")
	require.Equal(s, 1, limit)
}

// Kazoo counts the leases, makes its own, and does not count again.
func TestAnAcquireThatLosesItsPlaceInTheQueueDoesNotHoldBesideKazoo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		s := scene{t, w, coord.Kazoo}
		s.release(s.acquire(s.client(1)))
		goOn, p := make(chan struct{}), w.Proxy()
		held := p.Inject(proxy.Fault{On: []int32{proxy.OpMulti}, Path: s.queue(), Do: proxy.Hold(goOn)})
		granted := make(chan grant, 1)
		sem := s.of(s.open(p.Addr()), 1)
		go func() {
			g, err := sem.AcquireN(s.Context(), 1)
			granted <- grant{g, err}
		}()
		zktest.Receive(s, coordtest.Soon, held.First(), "the own lease is made and counted")
		require.NoError(s, w.Admin().Delete(s.youngest(s.queue()), -1))
		kazoo, err := w.Admin().Create(s.leases()+"/0123456789abcdef0123456789abcdef", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(s, err)
		close(goOn)
		s.nodes(s.queue(), 1)
		s.nodes(s.leases(), 2)
		require.Empty(s, granted, "two hold")
		require.NoError(s, w.Admin().Delete(kazoo, -1))
		s.release(s.granted(granted))
	})
}
