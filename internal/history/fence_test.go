package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWriteAfterThatOfALaterHolderIsStale(t *testing.T) {
	var f Fence
	f.Wrote("lock", 30, 3)
	f.Wrote("lock", 10, 1)
	f.Wrote("lock", 20, 3)
	f.Wrote("other", 40, 1)
	total, stale := f.Stale()
	require.Equal(t, 4, total)
	require.Zero(t, stale)
	f.Wrote("lock", 40, 2)
	_, stale = f.Stale()
	require.Equal(t, 1, stale)
}
