package recipe_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The directory is gone again twice after it was made.
func TestATransactionInADirectoryMakesTheDirectory(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		require.NoError(t, coordtest.Write(b.Context(), c))
		late := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpMulti}, Session: c.Info().SessionID, PathPrefix: "/jobs", Times: 3,
		}, zkembed.Delay(time.Second))
		for i := range 2 {
			time.AfterFunc(time.Duration(i+1)*time.Second+time.Second/2, func() {
				require.NoError(t, other.Delete(b.Context(), "/jobs", -1))
			})
		}
		_, err := recipe.TxnIn(b.Context(), c, "/jobs", coord.CheckOp("/", -1), coord.CreateOp("/jobs/one", nil))
		require.NoError(t, err)
		require.Equal(t, 3, late.Fired())
	})
}

func TestATransactionInADirectoryIsRefusedForWhatTheDirectoryDoesNotMend(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		ctx, cancel := context.WithCancel(b.Context())
		asked := 0
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(zkembed.Request) bool {
			if asked++; asked > 100 {
				cancel()
			}
			return false
		}}, zkembed.Drop())
		for _, op := range []coord.Op{
			coord.CheckOp("/jobs/missing", -1), coord.SetOp("/jobs/missing", nil, -1), coord.DeleteOp("/jobs/missing", -1),
			coord.CreateOp("/other/one", nil),
		} {
			_, err := recipe.TxnIn(ctx, c, "/jobs", coord.CreateOp("/jobs/one", nil), op)
			require.ErrorIs(t, err, coord.ErrNoNode)
		}
	})
}
