package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPlaceThatComesToLifeTooLateIsAProblem(t *testing.T) {
	r, first := &run{tally: newTally()}, map[string]time.Duration{}
	for _, p := range places {
		if limit, sure := revived(p); sure {
			first[p.name] = limit
		}
	}
	r.judgeRevival(first, 0)
	require.Empty(t, r.tally.problems)
	first["lock"] += 2 * time.Second
	r.judgeRevival(first, 2*time.Second)
	require.Empty(t, r.tally.problems, "the machine was late")
	r.judgeRevival(first, time.Second)
	require.Len(t, r.tally.problems, 1)
	delete(first, "lock")
	r.judgeRevival(first, 0)
	require.Len(t, r.tally.problems, 2)
}
