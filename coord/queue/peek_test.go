package queue_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
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

func TestALookShowsTheItemsAndWhoHasThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		q, another := b.queue(c), b.queue(other)
		_, _, err := q.Items(b.Context())
		require.ErrorIs(b, err, coord.ErrNoNode)
		for _, data := range []string{"a", "b", "c"} {
			require.NoError(b, q.Put(b.Context(), []byte(data)))
		}
		held, err := q.Receive(b.Context())
		require.NoError(b, err)
		_, err = another.Receive(b.Context())
		require.NoError(b, err)
		all, taken, err := q.Items(b.Context())
		require.NoError(b, err)
		require.Len(b, all, 3)
		require.Len(b, taken, 2)
		require.Contains(b, taken, path.Base(held.Hold().Node()))
		items, err := q.PeekAt(b.Context(), append(all, "entry-100-0000000099")...)
		require.NoError(b, err)
		require.Len(b, items, 3)
		require.Equal(b, "b", string(items[1].Data))
		require.Equal(b, queue.DefaultPriority, items[1].Priority)
		claims, err := q.Claims(b.Context(), all...)
		require.NoError(b, err)
		require.Len(b, claims, 2)
		for _, claim := range claims {
			require.Contains(b, []string{c.Identity(), other.Identity()}, claim.Owner)
			require.True(b, claim.Holds)
		}
		consumers, err := q.Consumers(b.Context())
		require.NoError(b, err)
		require.NotEmpty(b, consumers)
		require.Equal(b, queue.ConsumerKind, consumers[0].Kind)
	})
}
