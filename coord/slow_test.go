package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The slower the replies are, the more often they are asked for: otherwise
// hardly anything of the window would be left when the next one comes: three
// round trips are in it.
func TestAHoldOverASlowConnectionHasTimeForAnOutageLeft(t *testing.T) {
	t.Run("tick known", func(t *testing.T) { holdSlowly(t, T/5, T/8, coord.WithTick(tick)) })
	t.Run("tick unknown", func(t *testing.T) { holdSlowly(t, T/8, T/16) })
}

func holdSlowly(t *testing.T, roundTrip, left time.Duration, opts ...coord.Option) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open(opts...))
		b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti, zkembed.OpPing}}, zkembed.DelayReply(roundTrip))
		least := T
		for begun := time.Now(); time.Since(begun) < 20*T; time.Sleep(T / 100) {
			require.NoError(t, h.Err())
			least = min(least, time.Until(h.Deadline()))
		}
		require.Greater(t, least, left)
		require.NoError(t, h.Release(b.Context()))
	})
}

// A server that has hung answers nothing, and its connection stays open. Half
// of the session time-out is left for the way to another.
func TestAReadEndsWithItsContextWhenItsServerHangs(t *testing.T) {
	endsWithItsContext(t, func(ctx context.Context, c *coord.Client) error {
		_, err := c.Children(ctx, "/")
		return err
	})
}

func TestATransactionEndsWithItsContextWhenItsServerHangs(t *testing.T) {
	endsWithItsContext(t, func(ctx context.Context, c *coord.Client) error {
		_, err := c.Txn(ctx, coord.CheckOp("/", -1))
		return err
	})
}

func endsWithItsContext(t *testing.T, call func(context.Context, *coord.Client) error) {
	t.Helper()
	inBubble(t, func(b bubble) {
		c := b.Open()
		b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.Hang())
		for range 3 { // the first hangs
			begun := time.Now()
			ctx, cancel := context.WithTimeout(b.Context(), T/10)
			err := call(ctx, c)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, T/10, time.Since(begun))
		}
	})
}

func TestAServerThatHangsIsLeftAfterHalfOfTheSessionTimeout(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		hung := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.Hang())
		ctx, cancel := context.WithTimeout(b.Context(), T*6/10)
		defer cancel()
		require.NoError(t, c.Flush(ctx))
		require.Equal(t, 1, hung.Fired())
		require.NoError(t, h.Err())
		require.Equal(t, h.Session(), c.SessionID())
		require.NoError(t, h.Release(b.Context()))
	})
}
