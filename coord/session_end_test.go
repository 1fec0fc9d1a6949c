package coord_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAHoldHasEndedWhenTheServerHearsThatItsClientCloses(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		h := b.acquire(c)
		goodbye := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCloseSession}}, zkembed.DelayReply(time.Second/2))
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		next := b.acquire(other)
		require.Equal(t, 1, goodbye.Fired())
		require.Empty(t, closed, "still waiting for the answer")
		require.True(t, ended(h), "two holders")
		require.ErrorIs(t, h.Err(), coord.ErrClosed)
		require.NoError(t, <-closed)
		require.NoError(t, next.Release(b.Context()))
	})
}

// A server that says that the session is over ends it, even if it does not
// close the connection.
func TestASessionThatTheServerCallsExpiredIsOver(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		before := c.SessionID()
		b.Server.Inject(
			zkembed.Match{Session: before, Ops: []zkembed.Op{zkembed.OpCreate}},
			zkembed.ReplyError(zkembed.CodeSessionExpired))
		h := b.acquire(c)
		synctest.Wait()
		require.NotEqual(t, before, h.Session())
		require.NoError(t, h.Release(b.Context()))
	})
}
