package term

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAGaugeFitsOnItsLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "  "+strings.Repeat("█", 20)+strings.Repeat("░", 20)+" 5 of 10", gauge(5, 10, 200, nil))
	require.Equal(t, "  "+strings.Repeat("█", 10)+"✗"+strings.Repeat("█", 9)+strings.Repeat("░", 20)+" 20 of 40",
		gauge(20, 40, 200, []int{10}))
	for columns := 1; columns < 120; columns++ {
		line := []rune(gauge(3, 10, columns, []int{0, 3, 10}))
		require.LessOrEqual(t, len(line), max(columns-1, len("3 of 10")))
	}
	require.Contains(t, gauge(0, 0, 80, []int{0}), "0 of 0")
}
