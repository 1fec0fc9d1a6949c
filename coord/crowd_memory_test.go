package coord_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

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
					_, err := c.Acquire(ctx, mutex, coord.First)
					require.ErrorIs(b, err, context.Canceled)
				})
			}
			require.NoError(t, c.Flush(ctx))
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
			holds[i], err = c.Acquire(b.Context(), coord.Spec{Line: coord.LockLine(fmt.Sprintf("/%d", i)), Kind: "lock"}, coord.First)
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
