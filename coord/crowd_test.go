package coord_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// dialling is for a client whose dials are counted.
func (b bubble) dialling(dials *atomic.Int32) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return b.Server.DialContext(ctx, network, addr)
	})
}

// queueUp has n wait behind a hold of the same line, in one client. They are to
// give up in the end.
func (b bubble) queueUp(c *coord.Client, n int) (giveUp func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() {
			require.ErrorIs(b, coordtest.Err(c.Acquire(ctx, mutex, first)), context.Canceled)
		})
	}
	time.Sleep(time.Second) // a connection gets a head start
	synctest.Wait()
	return func() {
		cancel()
		waiting.Wait()
	}
}

// requests counts what a server is asked for from now on.
func (b bubble) requests(seen func(zkembed.Request), ops ...zkembed.Op) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Ops: ops, Func: func(r zkembed.Request) bool {
		seen(r)
		return false
	}}, zkembed.Drop())
}

func TestACrowdInOneClientListsTogether(t *testing.T) {
	inBubble(t, func(b bubble) {
		const n = 200
		var dials atomic.Int32
		h := b.acquire(b.Open())
		c := b.Open(b.dialling(&dials))
		giveUp := b.queueUp(c, n)
		var lists, reads atomic.Int32
		b.requests(func(r zkembed.Request) {
			if r.Session != c.SessionID() {
				return
			}
			if r.Op == zkembed.OpGetData {
				reads.Add(1)
			} else {
				lists.Add(1)
			}
		}, zkembed.OpGetData, zkembed.OpGetChildren, zkembed.OpGetChildren2)
		for range 2 {
			lists.Store(0)
			reads.Store(0)
			before := dials.Load()
			require.NoError(t, b.Server.DropConn(c.SessionID()))
			time.Sleep(time.Second)
			require.Equal(t, before+1, dials.Load())
			require.Positive(t, lists.Load())
			require.LessOrEqual(t, lists.Load(), int32(n/4)) // how many share one, the scheduler decides
			require.EqualValues(t, n+1, reads.Load(), "each node once, and the one that all wait for")
		}
		giveUp()
		require.NoError(t, h.Release(b.Context()))
	})
}

// What a claim looks at was listed after it had reason to look: a waiter whose
// predecessor goes while another's listing is under way has one of its own.
func TestAListingIsNotOlderThanItsReason(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(b.Open())
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1}, zkembed.DelayReply(time.Second))
		one, two := b.acquireLater(c, mutex), make(chan granted, 1)
		synctest.Wait()
		require.Equal(t, 1, slow.Fired())
		go func() {
			hold, err := c.Acquire(b.Context(), mutex, first)
			two <- granted{hold, err}
		}()
		time.Sleep(2 * time.Second)
		require.NoError(t, h.Release(b.Context()))
		next := <-one
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Release(b.Context()))
		last := <-two
		require.NoError(t, last.err)
		require.NoError(t, last.hold.Release(b.Context()))
	})
}

// A hold ends when its end is noticed; nodes are deleted afterwards.
func TestEveryHoldEndsBeforeTheFirstNodeIsDeleted(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		var holds []*coord.Hold
		for range 3000 {
			h, _, err := c.Stand(b.Context(), coord.Spec{Line: coord.Line{Dir: "/held"}, Kind: "held"})
			require.NoError(t, err)
			holds = append(holds, h)
		}
		var untold atomic.Int32
		deleted := make(chan struct{}, len(holds))
		b.requests(func(zkembed.Request) {
			for _, h := range holds {
				if !ended(h) {
					untold.Add(1)
				}
			}
			deleted <- struct{}{}
		}, zkembed.OpDelete)
		// The window ends, and the connection goes on.
		b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		for range holds {
			<-deleted
		}
		require.Zero(t, untold.Load())
	})
}

func TestTheProbeGoesFirstAfterAReconnect(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		giveUp := b.queueUp(c, 20)
		ops := make(chan zkembed.Op, 100)
		b.requests(func(r zkembed.Request) {
			if r.Session == c.SessionID() {
				ops <- r.Op
			}
		})
		require.NoError(t, b.Server.DropConn(c.SessionID()))
		require.Equal(t, zkembed.OpMulti, <-ops)
		giveUp()
		require.NoError(t, h.Release(b.Context()))
	})
}

// When all clients return, each reply can take most of the session time-out. To
// cut and to begin anew would add to it, and never end.
func TestABusyServerIsNotLeftAgainAndAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		var dials atomic.Int32
		c := b.Open(b.dialling(&dials))
		require.NoError(t, coordtest.Write(b.Context(), c))
		busy := b.Server.Inject(zkembed.Match{Func: func(r zkembed.Request) bool { return r.Session == c.SessionID() }}, zkembed.DelayReply(T*3/4))
		begun := time.Now()
		require.NoError(t, coordtest.Write(b.Context(), c))
		require.LessOrEqual(t, time.Since(begun), T*3/2)
		require.EqualValues(t, 2, dials.Load())
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

// A waiter keeps what it waits for, however long the line is, and has no
// goroutine but its caller's. What is counted is all that is on the heap when
// all wait and was not when the callers' goroutines were there but had not
// called: the embedded server's nodes and watches, in the same process, too.
// The callers' stacks are theirs, and are not counted.
func TestAWaiterInACrowdCostsAFewKilobytesAndNoGoroutine(t *testing.T) {
	const most = 9 << 9
	for _, n := range []int{2000, 5000} {
		inBubble(t, func(b bubble) {
			h := b.acquire(b.Open())
			c := b.Open()
			ctx, cancel := context.WithCancel(b.Context())
			begin := make(chan struct{})
			var waiting sync.WaitGroup
			for range n {
				waiting.Go(func() {
					<-begin
					require.ErrorIs(b, coordtest.Err(c.Acquire(ctx, mutex, coord.First)), context.Canceled)
				})
			}
			require.NoError(t, coordtest.Write(ctx, c))
			before := inUse()
			close(begin)
			time.Sleep(time.Second)
			after := inUse()
			each := (after.heap - before.heap) / uint64(n)
			t.Logf("%d waiters: %d bytes and %.2f goroutines each; stacks of callers: %d bytes", n, each,
				float64(after.goroutines-before.goroutines)/float64(n), (after.stacks-before.stacks)/uint64(n))
			require.LessOrEqual(t, each, uint64(most), "bytes for each of %d waiters", n)
			require.LessOrEqual(t, after.goroutines, before.goroutines, "goroutines beside those of %d callers", n)
			cancel()
			waiting.Wait()
			require.NoError(t, h.Release(b.Context()))
		})
	}
}

// What is counted is the hold, its claim, its node and the watch on that; and
// in the embedded server its directory, its node and the watch.
func TestAHeldLockCostsAFewKilobytesAndNoGoroutine(t *testing.T) {
	const n, most = 5000, 3000
	inBubble(t, func(b bubble) {
		c := b.Open()
		holds := make([]*coord.Hold, n)
		before := inUse()
		for i := range holds {
			var err error
			holds[i], err = c.Acquire(b.Context(), coord.Spec{Line: inspect.LockLine(fmt.Sprintf("/%d", i)), Kind: "lock"}, coord.First)
			require.NoError(b, err)
			time.Sleep(time.Millisecond) // one at a time: the runtime keeps what its goroutines need at once
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
