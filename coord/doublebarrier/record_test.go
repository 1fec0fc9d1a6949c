package doublebarrier

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// Two clients read the record and decide; only one of them may be believed.
func TestOfSeveralThatChangeTheRecordAtOnceOneSucceeds(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		a, c := record{b.Open(), "/b/ready"}, record{b.Open(), "/b/ready"}
		var from snapshot
		require.NoError(b, a.client.Wait(b.Context(), func(v *coord.View) (done bool, err error) {
			from, err = a.watchOrMake(v, 2)
			return true, err
		}))
		same, err := c.get(b.Context())
		require.NoError(b, err)
		require.Equal(b, from.stat.Version, same.stat.Version)

		require.NoError(b, a.write(b.Context(), a.client, from, from.resized(3)))
		require.ErrorIs(b, c.write(b.Context(), c.client, same, same.resized(4)), coord.ErrBadVersion)

		now, err := a.get(b.Context())
		require.NoError(b, err)
		require.Equal(b, 3, now.Size)
		require.NoError(b, c.write(b.Context(), c.client, now, now.resized(4)))
	})
}
