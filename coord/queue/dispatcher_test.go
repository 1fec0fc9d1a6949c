package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One goroutine may list anew between another's finding nothing and its
// waiting.
func TestNoConsumerWaitsWhileThereIsOrMayBeACandidate(t *testing.T) {
	var d dispatcher
	d.init(layout{})
	for _, c := range []struct {
		names   []string
		partial bool
		waits   bool
	}{
		{waits: true},
		{names: []string{"entry-100-0000000001"}},
		{partial: true},
	} {
		d.listing = listing{names: c.names, partial: c.partial, entries: make(chan struct{})}
		empty, _ := d.isEmpty(nil)
		require.Equal(t, c.waits, empty, "%+v", c)
	}
}
