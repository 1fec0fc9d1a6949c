package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWriteAfterThatOfALaterHolderIsStale(t *testing.T) {
	var f Fence
	f.Wrote("lock", Write{30, 3, 7})
	f.Wrote("lock", Write{10, 1, 1})
	f.Wrote("lock", Write{20, 3, 3})
	f.Wrote("other", Write{40, 1, 1})
	total, stale := f.Stale()
	require.Equal(t, 4, total)
	require.Empty(t, stale)
	f.Wrote("lock", Write{40, 2, 8})
	_, stale = f.Stale()
	require.Len(t, stale, 1)
}

func TestAWriteThatUndoesAnotherIsStale(t *testing.T) {
	var f Fence
	f.Wrote("lock", Write{10, 1, 1})
	f.Wrote("lock", Write{20, 2, 1})
	_, stale := f.Stale()
	require.Len(t, stale, 1)
}
