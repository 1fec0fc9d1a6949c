package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALossThatIsSignalledAfterTheWindowIsAProblemUnlessTimersWereAsLate(t *testing.T) {
	r := &run{tally: newTally()}
	r.signalled("c1.lock", time.Millisecond, 0)
	r.signalled("c1.lock", promptly+time.Second, time.Second)
	require.Empty(t, r.tally.problems)
	r.signalled("c1.lock", promptly+time.Second+1, time.Second)
	require.Len(t, r.tally.problems, 1)
}
