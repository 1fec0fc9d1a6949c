package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPipelineSendsSoManyRequestsAtATimeInOrder(t *testing.T) {
	t.Parallel()
	const n = 3 * poolSize
	var p pipeline
	var sent []int
	for i := range n {
		p.add(func() bool {
			sent = append(sent, i)
			return true
		})
	}
	for answered := range n {
		require.Len(t, sent, min(n, poolSize+answered))
		p.over()
	}
	for i, number := range sent {
		require.Equal(t, i, number)
	}
	require.Zero(t, p.underWay)
}

// As at the end of a session, when none of those that wait can be sent.
func TestAPipelineGoesOnBehindRequestsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	const n = 100_000
	var p pipeline
	tried, fails := 0, false
	for range n {
		p.add(func() bool {
			tried++
			return !fails
		})
	}
	require.Equal(t, poolSize, tried)
	fails = true
	p.over()
	require.Equal(t, n, tried)
	require.Equal(t, poolSize-1, p.underWay)
	p.add(func() bool { tried++; return false })
	require.Equal(t, n+1, tried)
	require.Equal(t, poolSize-1, p.underWay)
}
