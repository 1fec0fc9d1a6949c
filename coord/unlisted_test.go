package coord_test

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAnUnlistedClaimHoldsAtOnceForOneRequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member", Unlisted: true}
		first, _, err := c.Stand(b.Context(), spec)
		require.NoError(t, err)
		before := b.Server.SessionCounts(c.SessionID())
		second, _, err := c.Stand(b.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, zkembed.Counts{zkembed.OpCreate: 1}, b.Server.SessionCounts(c.SessionID()).Since(before))
		line, err := c.Children(b.Context(), "/group")
		require.NoError(t, err)
		require.Len(t, line, 2)
		require.NoError(t, first.Release(b.Context()))
		require.NoError(t, second.Release(b.Context()))
		b.Close(c)
	})
}

func TestAnUnlistedClaimIsRefusedNearTheEndOfTheSequenceNumbers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/group"))
		require.NoError(t, b.Server.SetSequence("/group", 2147483600))
		_, _, err := c.Stand(b.Context(), coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"})
		require.ErrorIs(t, err, coord.ErrSequenceExhausted)
		time.Sleep(time.Second)
		require.Zero(t, b.owned(c.SessionID()))
		b.Close(c)
	})
}

func TestATransactionTooLargeForAServerIsRefusedBeforeItIsSent(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		id := c.SessionID()
		require.NoError(t, c.EnsureDir(b.Context(), "/d"))
		check := coord.CheckOp("/"+strings.Repeat("d", 76), -1) // 94 bytes each, beside 17
		ops := make([]coord.Op, 11_155)
		for i := range ops {
			ops[i] = check
		}
		_, err := c.Txn(b.Context(), ops...)
		require.ErrorIs(t, err, coord.ErrTooLarge)
		_, err = c.Txn(b.Context(), ops[:11_154]...)
		require.ErrorIs(t, err, coord.ErrNoNode, "the server has looked at it")
		require.Equal(t, id, c.SessionID())
		b.Close(c)
	})
}

func TestWhoStandsInALineKnowsAllWhoCameBefore(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		spec := coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member"}
		first, _, err := other.Stand(b.Context(), spec)
		require.NoError(b, err)
		lost := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpGetChildren2}, Session: c.SessionID(), Times: 1,
		}, zkembed.LoseReply())
		second, names, err := c.Stand(b.Context(), spec)
		require.NoError(b, err)
		require.Equal(b, 1, lost.Fired())
		require.ElementsMatch(b, []string{path.Base(first.Node()), path.Base(second.Node())}, names)
	})
}
