package coord_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// warnings is a log that keeps what begins with a text.
type warnings struct {
	slog.Handler
	text  string
	count atomic.Int32
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, w.text) {
		w.count.Add(1)
	}
	return nil
}

// After a restored backup, tokens go back: fences refuse every new holder.
func TestAClientWarnsOnceOfServersThatHaveLostChanges(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		at := atomic.Pointer[zkembed.Server]{}
		at.Store(b.Server)
		log := &warnings{text: "the servers have lost changes"}
		c := b.Open(coord.WithLogger(slog.New(log)), coord.WithDialer(
			func(ctx context.Context, network, address string) (net.Conn, error) {
				return at.Load().DialContext(ctx, network, address)
			}))
		for range 10 {
			require.NoError(b, coordtest.Write(b.Context(), c))
		}
		id := c.Info().SessionID
		require.NoError(b, b.Server.ExpireSession(id))
		require.NoError(b, coordtest.Write(b.Context(), c))
		require.NotEqual(b, id, c.Info().SessionID)
		require.Zero(b, log.count.Load(), "the session ended, and nothing was lost")

		empty, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(coordtest.Tick), zkembed.WithReaper(0))
		require.NoError(b, err)
		at.Store(empty)
		b.Server.DropConns()
		time.Sleep(3 * coordtest.T)
		require.NoError(b, coordtest.Write(b.Context(), c))
		require.EqualValues(b, 1, log.count.Load())
		b.Close(c)
		require.NoError(b, empty.Close())
	})
}
