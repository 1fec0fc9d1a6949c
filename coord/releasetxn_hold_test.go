package coord_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The hold is lost while the transaction is repeated, and its node deleted for
// that; the repetition must not take the deletion for its own.
func TestATransactionThatReleasesIsCarriedOutIfItSaysSoThoughTheHoldIsLostMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.LoseAtDisconnect())
		for range 20 {
			h := b.acquire(c)
			f := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.Drop())
			err := b.release(b.Context(), c, h, coord.CreateOp("/done", nil))
			require.Equal(b, 1, f.Fired())
			made := slices.ContainsFunc(b.Server.Nodes(), func(n zkembed.Node) bool { return n.Path == "/done" })
			if err == nil {
				require.True(b, made, "not carried out")
			} else {
				require.ErrorIs(b, err, coord.ErrLost)
			}
			if made {
				require.NoError(b, c.Delete(b.Context(), "/done", -1))
			}
			require.ErrorIs(b, h.Err(), coord.ErrLost)
		}
	})
}

// The node goes with the transaction, and what a new handle stands for.
func TestAHoldThatATransactionIsReleasingCanBeNeitherNestedNorDowngraded(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		again := coord.Spec{Line: coord.LockLine("/lock"), Kind: "write", Exclusive: true, Reentrant: true}
		h, err := c.Acquire(b.Context(), again, first)
		require.NoError(t, err)
		b.Server.Inject(zkembed.Match{PathPrefix: "/done"}, zkembed.DelayReply(time.Second))
		released := make(chan error, 1)
		go func() { released <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
		synctest.Wait()
		_, err = c.Acquire(h.Context(b.Context()), again, first)
		require.ErrorIs(t, err, coord.ErrInvalid)
		_, err = h.Downgrade(b.Context())
		require.ErrorIs(t, err, coord.ErrInvalid)
		require.NoError(t, <-released)
	})
}
