package soak

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestTheHeapThatTheLibraryKeepsIsSeenAndThatOfTheHarnessIsNot(t *testing.T) {
	before := libraryHeap()
	own := make([]byte, 16<<20)
	require.Less(t, libraryHeap()-before, float64(4<<20))
	var kept []coord.Line
	for i := range 300_000 {
		kept = append(kept, coord.LockLine(fmt.Sprint("/lock/", i)))
	}
	require.Greater(t, libraryHeap()-before, float64(4<<20))
	require.NotEmpty(t, own)
	require.Len(t, kept, 300_000)
}

func TestSamplesStandForAsMuchAsTheirProbabilitySays(t *testing.T) {
	require.Zero(t, scaled(0, 0, 512<<10))
	require.InDelta(t, 512<<10, scaled(1, 64, 512<<10), 64)
	require.InDelta(t, 64<<20, scaled(1, 64<<20, 512<<10), 1)
}
