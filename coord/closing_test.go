package coord_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// The server tells of the deletion of a watched node before it answers the
// goodbye that deletes it.
func TestAHoldThatEndsWithItsClientSaysSoAlsoWhenItsNodeIsWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		time.Sleep(time.Second) // until the own watch is set
		b.Close(c)
		<-h.Done()
		require.ErrorIs(t, h.Err(), coord.ErrClosed)
		require.NotErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}
