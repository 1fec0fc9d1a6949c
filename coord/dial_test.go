package coord_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// after is a dialer that takes its time.
func (b bubble) after(d time.Duration) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-time.After(d):
			return b.Server.DialContext(ctx, network, addr)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestAConnectionThatTakesLongIsMade(t *testing.T) {
	for _, d := range []time.Duration{1100 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			inBubble(t, func(b bubble) {
				begun := time.Now()
				c := b.Open(coord.WithDialer(b.after(d)))
				require.Less(t, time.Since(begun), d+time.Second)
				require.NoError(t, b.Server.DropConn(c.SessionID()))
				id := c.SessionID()
				require.NoError(t, c.Flush(b.Context()))
				require.Equal(t, id, c.SessionID())
			})
		})
	}
}

func TestAServerThatDoesNotAcceptKeepsTheOthersWaitingForASecondOnly(t *testing.T) {
	inBubble(t, func(b bubble) {
		hung := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "hung") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return b.Server.DialContext(ctx, network, addr)
		}
		begun := time.Now()
		c, err := coord.Open(b.Context(), "hung1:1,hung2:1,good:1", coord.WithSessionTimeout(T), coord.WithDialer(hung))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begun), 2100*time.Millisecond)
		b.Close(c)
	})
}

// Connections that do not come up must not pile up.
func TestFewAttemptsToConnectAreUnderWayAtATime(t *testing.T) {
	inBubble(t, func(b bubble) {
		var running, most atomic.Int32
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		_, err := coord.Open(ctx, "a:1,b:1", coord.WithSessionTimeout(T), coord.WithDialer(
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return nil, ctx.Err()
			}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, coord.ErrDisconnected)
		require.LessOrEqual(t, most.Load(), int32(8))
		require.Greater(t, most.Load(), int32(2))
	})
}
