package doublebarrier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// BenchmarkRound is one round of n members with a session each: all enter at
// once, and leave at once. The server is in the same process.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{8, 32} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			w := zktest.NewEmbedded(b)
			w.SetTimeout(time.Minute) // no probe comes in between
			barriers := make([]*doublebarrier.Barrier, n)
			for i := range barriers {
				c := coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
				barriers[i] = barrier(b, c, w.Path("barrier"), n)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range leaveAll(b, round(b, barriers...)...) {
					require.NoError(b, err)
				}
			}
		})
	}
}
