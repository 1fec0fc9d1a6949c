package coord_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// queueUp has n wait behind a hold of the same line, in one client, until the
// test ends; each asks as far as it can before the next begins.
func (b bubble) queueUp(c *coord.Client, n int) {
	var waiting sync.WaitGroup
	b.Cleanup(waiting.Wait)
	for range n {
		waiting.Go(func() {
			require.ErrorIs(b, coordtest.Err(recipe.Acquire(b.Context(), c, &mutex, first)), context.Canceled)
		})
		synctest.Wait()
	}
	time.Sleep(time.Second) // a connection gets a head start
	synctest.Wait()
}

// requests counts the requests that a server gets from now on.
func (b bubble) requests(seen func(zkembed.Request), ops ...zkembed.Op) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Ops: ops, Func: func(r zkembed.Request) bool {
		seen(r)
		return false
	}}, zkembed.Drop())
}

// A reply takes a moment, as it does over any network: in a bubble that moment
// begins when all the others have asked. Two listings are under way by then,
// and the others share the next.
func TestACrowdInOneClientListsTogether(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n, most = 200, 3
		b.acquire(b.Open())
		c, lost := b.hearing(event.SessionDown)
		require.NoError(t, coordtest.Write(b.Context(), c))
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}},
			zkembed.DelayReply(time.Millisecond))
		judge := func(asked zkembed.Counts) {
			lists := asked[zkembed.OpGetChildren] + asked[zkembed.OpGetChildren2]
			require.Positive(t, lists)
			require.LessOrEqual(t, lists, most)
		}
		judge(b.asked(c, func() { b.queueUp(c, n) }))
		for i := range 2 {
			asked := b.asked(c, func() {
				require.NoError(t, b.Server.DropConn(c.Info().SessionID))
				time.Sleep(time.Second)
			})
			require.Len(t, lost, i+1)
			judge(asked)
			require.Equal(t, n+1, asked[zkembed.OpGetData], "each node once, and the one that all wait for")
		}
	})
}

// A claim uses only listings that began after it had reason to look: if its
// predecessor goes during another waiter's listing, the claim lists again.
func TestAListingIsNotOlderThanItsReason(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(b.Open())
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1},
			zkembed.DelayReply(time.Second))
		one := b.acquireLater(c)
		require.Equal(t, 1, slow.Fired())
		two := b.acquireLater(c)
		time.Sleep(2 * time.Second)
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, b.granted(one).Release(b.Context()))
		b.granted(two)
	})
}

// A hold ends when its end is noticed; nodes are deleted afterwards.
func TestEveryHoldEndsBeforeTheFirstNodeIsDeleted(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		var holds []*coord.Hold
		for i := range 3000 { // lines of one are cheap to list
			holds = append(holds, b.stand(c, coord.Spec{Line: coord.Line{Dir: fmt.Sprint("/held-", i)}, Kind: "held"}))
		}
		untold := -1
		deleted := make(chan struct{}, len(holds))
		first := sync.OnceFunc(func() {
			untold = len(holds)
			for _, h := range holds {
				if ended(h) {
					untold--
				}
			}
		})
		b.requests(func(zkembed.Request) {
			first()
			deleted <- struct{}{}
		}, zkembed.OpDelete)
		// The window ends, and the connection goes on.
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}},
			zkembed.ReplyError(zkembed.CodeThrottledOp))
		for range holds {
			<-deleted
		}
		require.Zero(t, untold)
	})
}

func TestTheProbeGoesFirstAfterAReconnect(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, _ := b.holder()
		b.queueUp(c, 20)
		ops := make(chan zkembed.Op, 100)
		b.requests(func(r zkembed.Request) {
			if r.Session == c.Info().SessionID {
				ops <- r.Op
			}
		})
		require.NoError(t, b.Server.DropConn(c.Info().SessionID))
		require.Equal(t, zkembed.OpMulti, <-ops)
	})
}

// When all clients return, each reply can take most of the session timeout. To
// cut and to begin anew would add to it, and never end.
func TestABusyServerIsNotLeftAgainAndAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		require.NoError(t, coordtest.Write(b.Context(), c))
		busy := b.Server.Inject(zkembed.Match{Func: func(r zkembed.Request) bool { return r.Session == c.Info().SessionID }},
			zkembed.DelayReply(T*3/4))
		begun := time.Now()
		require.NoError(t, coordtest.Write(b.Context(), c))
		require.LessOrEqual(t, time.Since(begun), T*3/2)
		require.Len(t, lost, 1)
		busy.Remove()
	})
}

// usage is what a process has in use once garbage is gone. The stacks of
// goroutines are not on the heap.
type usage struct {
	heap, stacks uint64
	goroutines   int
}

func inUse() usage {
	synctest.Wait()
	for range 2 { // what a pool keeps goes in the second round
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{m.HeapAlloc, m.StackInuse, runtime.NumGoroutine()}
}

// F79. A waiter keeps what it waits for, however long the line is, and has no
// goroutine but its caller's, with a stack of 4 KiB if the caller has left
// little on it. The test counts the heap that grows between the start of the
// callers' goroutines and the time when all wait, including the nodes and
// watches of the embedded server in this process; and the callers' stacks, with
// what the runtime keeps free for others.
func TestAWaiterInACrowdCostsAFewKilobytesAndNoGoroutine(t *testing.T) {
	const most = 9 << 8
	mostStack := uint64(11 << 9)
	if virtual.Race {
		mostStack = 9 << 10
	}
	for _, n := range []int{2000, 5000} {
		inBubble(t, func(b bubble) {
			held, err := lock.New(b.Open(), "/crowd")
			require.NoError(t, err)
			_, err = held.Acquire(b.Context())
			require.NoError(t, err)
			c := b.Open()
			awaited, err := lock.New(c, "/crowd")
			require.NoError(t, err)
			none := inUse()
			begin, outcomes := make(chan struct{}), make(chan error, n)
			b.Cleanup(func() {
				for range n {
					require.ErrorIs(b, <-outcomes, context.Canceled)
				}
			})
			for range n {
				go func() {
					<-begin
					_, err := awaited.Acquire(b.Context())
					outcomes <- err
				}()
			}
			require.NoError(t, coordtest.Write(b.Context(), c))
			before := inUse()
			close(begin)
			time.Sleep(time.Second)
			after := inUse()
			each := (after.heap - before.heap) / uint64(n)
			stack := (after.stacks - none.stacks) / uint64(n)
			t.Logf("%d waiters: %d bytes and %.2f goroutines each; stacks of callers: %d bytes", n, each,
				float64(after.goroutines-before.goroutines)/float64(n), stack)
			require.LessOrEqual(t, each, uint64(most), "bytes for each of %d waiters", n)
			require.LessOrEqual(t, stack, mostStack, "bytes of stack for each of %d waiters", n)
			require.LessOrEqual(t, after.goroutines, before.goroutines, "goroutines beside those of %d callers", n)
		})
	}
}

// F79. The test counts both ends: the embedded server has its connections in
// this process, too.
func TestF79AnIdleClientCostsSomeTensOfKilobytes(t *testing.T) {
	const n, most = 100, 96 << 10
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, coordtest.Write(b.Context(), c))
		before := inUse()
		for range n {
			require.NoError(b, coordtest.Write(b.Context(), b.Open()))
		}
		after := inUse()
		each := (after.heap + after.stacks - before.heap - before.stacks) / n
		t.Logf("%d bytes each, heap and stacks, and %d goroutines", each, (after.goroutines-before.goroutines)/n)
		require.LessOrEqual(t, each, uint64(most))
	})
}

// The test counts the hold, its claim, its node and the node's watch, and in
// the embedded server the directory, the node and the watch.
func TestAHeldLockCostsAFewKilobytesAndNoGoroutine(t *testing.T) {
	const n, most = 5000, 3000
	inBubble(t, func(b bubble) {
		c := b.Open()
		holds := make([]*coord.Hold, n)
		before := inUse()
		for i := range holds {
			var err error
			holds[i], err = recipe.Acquire(b.Context(), c,
				&coord.Spec{Line: inspect.LockLine(fmt.Sprintf("/%d", i)), Kind: "lock"}, coord.First)
			require.NoError(b, err)
			time.Sleep(time.Millisecond) // one at a time: the runtime keeps the memory of concurrent goroutines
		}
		time.Sleep(time.Second) // by then each node is watched
		after := inUse()
		each := (after.heap - before.heap) / n
		t.Logf("%d bytes each", each)
		require.LessOrEqual(t, each, uint64(most))
		require.LessOrEqual(t, after.goroutines, before.goroutines)
		require.NoError(b, holds[0].Err())
	})
}

func (b bubble) connected(opts ...coord.Option) *coord.Client {
	b.Helper()
	c := b.Open(opts...)
	require.NoError(b, coordtest.Write(b.Context(), c))
	return c
}

// wait has a claim of c, which is connected, wait for its turn by
// [coord.First], and returns once it does.
func (b bubble) wait(c *coord.Client, spec coord.Spec) <-chan outcome {
	over := b.later(acquirer(c, spec, coord.First))
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return over
}

// listings counts those of a client from now on.
func (b bubble) listings(c *coord.Client) (count func() int) {
	before := b.Server.SessionCounts(c.Info().SessionID)
	return func() int { return b.Server.SessionCounts(c.Info().SessionID).Since(before)[zkembed.OpGetChildren2] }
}

// waiters are n claims of the mutex that wait as by [bubble.wait].
func (b bubble) waiters(c *coord.Client, n int) (waiting []<-chan outcome) {
	for range n {
		waiting = append(waiting, b.wait(c, mutex))
	}
	return waiting
}

// handOver releases h and has n waiters hold one after the other. It returns
// the last one's hold and the remaining waiters, none of which holds.
func (b bubble) handOver(h *coord.Hold, waiting []<-chan outcome, n int) (*coord.Hold, []<-chan outcome) {
	b.Helper()
	for range n {
		require.NoError(b, h.Release(b.Context()))
		h, waiting = b.granted(waiting[0]), waiting[1:]
		time.Sleep(time.Second)
		for _, other := range waiting {
			require.Empty(b, other, "two holders")
		}
	}
	return h, waiting
}

// A waiter that has reason to look takes the listing of one that joined behind
// it, as long as that says enough: the rule names none that may have gone.
func TestAWaiterTakesTheListingOfANewcomerOfTheSameClient(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.connected(), b.Open()
		h := b.acquire(other)
		between := b.stand(other, mutex)
		waiting := b.waiters(c, 6)
		time.Sleep(time.Second) // each watches its node
		reads := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}, Session: c.Info().SessionID},
			zkembed.Drop())
		require.NoError(t, between.Release(b.Context()))
		time.Sleep(time.Second)
		// At the first hand-off, the last joiner's listing does not show the
		// second that the contender between has gone. The second's own listing
		// shows it to all waiters.
		for _, want := range []int{1, 0, 0, 0} {
			lists := b.listings(c)
			h, waiting = b.handOver(h, waiting, 1)
			require.Equal(t, want, lists(), "%d wait", len(waiting))
		}
		require.Zero(t, reads.Fired(), "all that they wait for was watched")
		reads.Remove()
		b.handOver(h, waiting, len(waiting))
	})
}

// A claim that comes when many of its client wait already waits behind these.
// It lists, or takes the listing of another, when its turn is near.
func TestAClaimBehindManyOfTheSameClientIsNotListed(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 20
		c, other := b.connected(), b.Open()
		h := b.acquire(other)
		waiting := b.waiters(c, n)
		lists := b.listings(c)
		waiting = append(waiting, b.waiters(c, n)...)
		require.Zero(t, lists())
		waiting = append(waiting, b.wait(other, mutex)) // not known to the next
		waiting = append(waiting, b.waiters(c, n)...)
		require.Zero(t, lists())
		h, waiting = b.handOver(h, waiting, len(waiting)-2) // of the last two, none keeps a listing
		require.LessOrEqual(t, lists(), 3)
		b.handOver(h, waiting, len(waiting))
	})
}

// A claim that did not list as it joined is not refused after a long wait for a
// contender of the other dialect before it: it waits for that one, too.
func TestF56AClaimBehindManyOfTheSameClientWaitsForAForeignerItFindsLater(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 17
		c, kazoo := b.connected(), b.Open(coord.WithDialect(coord.Kazoo))
		h := b.acquire(c)
		waiting := b.waiters(c, n)
		foreign := b.stand(kazoo, mutex)
		last := b.wait(c, mutex)
		h, _ = b.handOver(h, waiting, n)
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Hour)
		require.Empty(t, last, "refused, or granted beside a contender that came first")
		require.NoError(t, foreign.Release(b.Context()))
		b.granted(last)
	})
}

// A claim is not granted when its own client's claims ahead have gone: other
// clients' claims may stand between.
func TestAClaimThatFollowsItsClientsOwnLooksWhenTheyAreGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		spec := func(kind string) coord.Spec {
			return coord.Spec{Line: coord.Line{Dir: "/lock", Kinds: []string{"one", "two"}}, Kind: kind}
		}
		ofItsKind := func(kind string) coord.Rule {
			return func(ahead []coord.Contender) ([]int, bool) {
				for i, c := range slices.Backward(ahead) {
					if c.Kind == kind {
						return []int{i}, false
					}
				}
				return nil, true
			}
		}
		c, other := b.connected(), b.Open()
		b.stand(other, spec("one"))
		b.stand(other, spec("two"))
		wait := func(ctx context.Context, kind string) <-chan outcome {
			over := coordtest.Begin(ctx, acquirer(c, spec(kind), ofItsKind(kind)))
			time.Sleep(time.Millisecond)
			synctest.Wait()
			return over
		}
		for range 15 {
			wait(b.Context(), "one")
		}
		ctx, cancel := context.WithCancel(b.Context())
		canceled := wait(ctx, "two")
		time.Sleep(time.Second)
		lists := b.listings(c)
		last := wait(b.Context(), "two")
		require.Zero(t, lists())
		cancel()
		require.ErrorIs(t, (<-canceled).Err, context.Canceled)
		time.Sleep(time.Second)
		require.Empty(t, last, "two holders")
		require.Equal(t, 1, lists())
		b.Close(c, other)
		require.ErrorIs(t, (<-last).Err, coord.ErrClosed)
	})
}

// A rule that grants a turn by these alone is asked about all.
func TestAClaimIsNotGrantedByItsClientsOwn(t *testing.T) {
	inBubble(t, func(b bubble) {
		many := func(ahead []coord.Contender) (wait []int, granted bool) {
			for i := range ahead {
				wait = append(wait, i)
			}
			return wait, len(ahead) < 20
		}
		c := b.connected()
		var holds []*coord.Hold
		acquire := func() <-chan outcome {
			over := b.later(acquirer(c, mutex, many))
			time.Sleep(time.Millisecond)
			return over
		}
		for range 20 {
			next := <-acquire()
			require.NoError(t, next.Err)
			holds = append(holds, next.Value)
		}
		var waiting []<-chan outcome
		for range 60 {
			waiting = append(waiting, acquire())
		}
		for i := range waiting {
			require.Empty(t, waiting[i], "too many holders")
			require.NoError(t, holds[i].Release(b.Context()))
			holds = append(holds, b.granted(waiting[i]))
		}
		for _, h := range holds[60:] {
			require.NoError(t, h.Release(b.Context()))
		}
	})
}

// Another waiter's listing does not prove that our node exists: the listing
// may lack the node, or the node may have gone since.
func TestAWaiterWhoseNodeMayBeGoneListsForItself(t *testing.T) {
	for name, listed := range map[string]bool{"not listed": false, "not seen since it was listed": true} {
		runInBubble(t, name, func(b bubble) {
			c, other := b.connected(), b.Open()
			h := b.acquire(other)
			one := b.wait(c, mutex)
			time.Sleep(time.Second)
			var ahead []*coord.Hold
			for range 17 {
				ahead = append(ahead, b.stand(other, mutex))
			}
			last := b.wait(c, mutex) // far back: its own node is not watched yet
			for _, h := range ahead[:15] {
				require.NoError(b, h.Release(b.Context()))
			}
			own := slices.MaxFunc(b.nodesOf(c.Info().SessionID), func(a, b string) int {
				return cmp.Compare(a[len(a)-10:], b[len(b)-10:])
			})
			if listed {
				time.Sleep(100 * time.Millisecond)
				b.stand(c, mutex)
			}
			require.NoError(b, inspect.Break(b.Context(), other, own))
			if !listed {
				b.stand(c, mutex)
			}
			require.NoError(b, ahead[15].Release(b.Context()))
			synctest.Wait()
			require.Equal(b, 3, b.owned(c.Info().SessionID), "it has joined again")
			require.Empty(b, one)
			require.Empty(b, last)
			require.NoError(b, h.Release(b.Context()))
			b.Close(c, other)
			<-one
			<-last
		})
	}
}

// A contender that cannot be honoured is reported to each claim that it came
// after, also when another claim of the client has listed it.
func TestALateForeignerIsReportedToThoseWhoShareAListing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, reported := b.hearing(event.Foreign)
		require.NoError(b, coordtest.Write(b.Context(), c))
		other := b.Open()
		spec := coord.Spec{Line: inspect.LockLine(mutex.Line.Dir), Kind: "lock", Unlisted: true}
		h, between := b.acquire(other), b.stand(other, mutex)
		one, two := b.wait(c, spec), b.wait(c, spec)
		time.Sleep(time.Second)
		b.stand(other, coord.Spec{Line: mutex.Line, Kind: "latch"})
		b.stand(c, mutex) // which lists
		require.Empty(t, reported)
		require.NoError(t, h.Release(b.Context()))
		synctest.Wait()
		require.Len(t, reported, 1)
		require.NoError(t, between.Release(b.Context()))
		b.granted(one)
		require.Empty(t, two)
		b.Close(c, other)
		<-two
	})
}

func TestAClaimThatIsFoundNearTheFrontWatchesItsNodeSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.Open(), b.acquire(b.Open())
		waiting, leave := context.WithCancel(b.Context())
		for range 18 {
			go func() {
				if h, err := recipe.Acquire(waiting, c, &mutex, coord.First); err == nil {
					_ = h.Release(b.Context())
				}
			}()
			synctest.Wait()
		}
		defer leave()
		time.Sleep(time.Second)
		last := b.later(acquirer(c, mutex, coord.First))
		synctest.Wait()
		b.stand(c, mutex) // which lists
		require.NoError(b, h.Release(b.Context()))
		got := b.granted(last)
		begun := time.Now()
		require.NoError(b, b.Open().Delete(b.Context(), got.Node(), -1))
		<-got.Done()
		require.LessOrEqual(b, time.Since(begun), 21*time.Millisecond)
	})
}

// A server with the fix of CVE-2024-23944 tells nothing of a node to one who
// may not read it. More nodes are unreadable here than a session asks for at a
// time.
func TestMoreUnreadableNodesThanAreAskedForAtATimeAreWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 200
		h, c := b.acquire(b.Open()), b.connected()
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		waiting := b.waiters(c, n)
		h, _ = b.handOver(h, waiting, n)
		require.NoError(t, h.Release(b.Context()))
	})
}
