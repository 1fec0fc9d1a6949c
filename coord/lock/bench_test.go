package lock_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The server is in the same process, so times and allocations are those of both
// sides; what changes between two revisions of the library is its own.

func BenchmarkAcquireRelease(b *testing.B) {
	cycle := contender(b, zktest.NewEmbedded(b))
	b.ReportAllocs()
	for b.Loop() {
		cycle()
	}
}

// BenchmarkHandOff is one cycle of n sessions that want the same lock all the
// time.
func BenchmarkHandOff(b *testing.B) {
	for _, n := range []int{2, 8, 32, 128} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			w := zktest.NewEmbedded(b)
			cycles := make([]func(), n)
			for i := range cycles {
				cycles[i] = contender(b, w)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var sessions sync.WaitGroup
			for _, cycle := range cycles {
				sessions.Go(func() {
					for left.Add(-1) >= 0 {
						cycle()
					}
				})
			}
			sessions.Wait()
			b.StopTimer()
		})
	}
}

// contender returns one cycle of acquire and release of a session of its own,
// after a first one.
func contender(b *testing.B, w *zktest.World, opts ...lock.Option) (cycle func()) {
	w.SetTimeout(time.Minute) // no probe comes in between
	m, err := lock.New(coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute)), w.Path("lock"), opts...)
	require.NoError(b, err)
	cycle = func() {
		h, err := m.Acquire(b.Context())
		if err == nil {
			err = h.Release(b.Context())
		}
		if err != nil {
			b.Error(err)
		}
	}
	cycle()
	return cycle
}

// BenchmarkManyInOneProcess is one cycle of 2,000 goroutines that share a
// client and want the same lock all the time.
func BenchmarkManyInOneProcess(b *testing.B) {
	for name, opts := range map[string][]lock.Option{
		"queue=none":  nil,
		"queue=local": {lock.LocalQueue(1000, time.Second)},
	} {
		b.Run(name, func(b *testing.B) {
			cycle := contender(b, zktest.NewEmbedded(b), opts...)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var goroutines sync.WaitGroup
			for range 2000 {
				goroutines.Go(func() {
					for left.Add(-1) >= 0 {
						cycle()
					}
				})
			}
			goroutines.Wait()
			b.StopTimer()
		})
	}
}

// BenchmarkLinger is one cycle of a lock that lingers and is taken again.
func BenchmarkLinger(b *testing.B) {
	cycle := contender(b, zktest.NewEmbedded(b), lock.Linger(time.Minute))
	b.ReportAllocs()
	for b.Loop() {
		cycle()
	}
}
