package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One goroutine may list anew between another's finding nothing and its
// waiting.
func TestNoConsumerWaitsWhileThereIsOrMayBeACandidate(t *testing.T) {
	h := head{changed: make(chan struct{}), back: make(chan struct{})}
	for _, c := range []struct {
		names []string
		blind bool
		waits bool
	}{
		{waits: true},
		{names: []string{"entry-100-0000000001"}},
		{blind: true},
	} {
		h.names, h.blind = c.names, c.blind
		changed, _, back := h.signals()
		require.Equal(t, c.waits, changed != nil, "%+v", c)
		require.NotNil(t, back)
	}
}
