package session_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// F51: many suspends, each too short to be told from clocks that differ.
func TestF51SuspendsThatAreShortEachEndTheWindowWithinTheTimeoutOfRealTime(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		const T, apart = 10 * time.Second, 40 * time.Millisecond
		server, err := zkembed.Start(zkembed.WithAddr(""))
		require.NoError(t, err)
		defer server.Close()
		var slept atomic.Int64
		k, err := session.NewKeeper(session.Config{
			Config: servers.Config{Servers: []string{server.Addr()}, Dial: server.DialContext}, Timeout: T,
			Log:    slog.New(slog.DiscardHandler),
			Notify: func(session.Change, *session.Session) {}, Suspended: func() time.Duration {
				return time.Duration(slept.Load())
			},
		})
		require.NoError(t, err)
		defer k.Close(context.Background())
		s, err := k.Session(context.Background())
		require.NoError(t, err)
		s.KeepOpen()
		defer s.LetClose()
		time.Sleep(3 * T)
		require.True(t, time.Now().Before(s.Deadline()))

		defer server.Partition(zkembed.Cut{}).Heal()
		passed := time.Duration(0)
		for ; time.Now().Before(s.Deadline()); passed += apart + T*19/1000 {
			require.Less(t, passed, T, "trusted for too long")
			time.Sleep(apart)
			slept.Add(int64(T * 19 / 1000))
		}
		require.Greater(t, passed, T/3)
	})
}
