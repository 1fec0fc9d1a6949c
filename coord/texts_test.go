package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestAnOperationWithoutAParentSaysThatTheParentIsMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, err := b.Open().Txn(b.Context(), coord.CheckOp("/", -1), coord.CreateOp("/missing/n", nil))
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.EqualError(b, err, "transaction: operation 1 (create /missing/n): parent /missing: node does not exist")
	})
}

func TestAWaitThatItsDeadlineEndsNamesWhoHoldsOrIsAhead(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, second, last := b.Open(), b.Open(), b.Open()
		h := b.acquire(holder)
		waits := func(c *coord.Client, most time.Duration) error {
			ctx, cancel := context.WithTimeout(b.Context(), most)
			defer cancel()
			_, err := c.Acquire(ctx, mutex, first)
			return err
		}
		over := make(chan error, 1)
		go func() { over <- waits(second, time.Minute) }()
		time.Sleep(time.Second)
		err := waits(last, time.Second)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.EqualError(b, err, `acquire /lock: context deadline exceeded; behind "`+second.Identity()+`"`)
		require.EqualError(b, <-over, `acquire /lock: context deadline exceeded; held by "`+holder.Identity()+`"`)
		require.NoError(b, h.Release(b.Context()))
	})
}

// Another program's node may have anything for data.
func TestAWaitBehindANodeThatDoesNotSayWhoItIsNamesTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		node := "/lock/_c_4f1d5b2c-0000-4000-8000-000000000000-lock-0000000000"
		require.NoError(b, c.Create(b.Context(), node, nil))
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := b.Open().Acquire(ctx, mutex, first)
		require.ErrorContains(b, err, "; held by "+node)
	})
}
