package queue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

// Each listing costs as much as the queue is long.
func TestPeekListsOnceHoweverManyItemsGoMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q := b.queue(c)
		for range 10 {
			require.NoError(b, q.Put(b.Context(), []byte("item")))
		}
		before := b.Server.SessionCounts(c.SessionID())
		gone := b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, Times: 5}, zkembed.ReplyError(zkembed.CodeNoNode))
		item, err := q.Peek(b.Context())
		require.NoError(b, err)
		require.Equal(b, "item", string(item.Data))
		require.Equal(b, 5, gone.Fired())
		counts := b.Server.SessionCounts(c.SessionID()).Since(before)
		require.Equal(b, 2, counts[zkembed.OpGetChildren]+counts[zkembed.OpGetChildren2], "the items, and the claims")
	})
}
