package session

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// An attempt by another caller was answered before the node was created, and
// ends afterwards.
func TestAFailureThatIsOlderThanTheCallIsNoAnswerToIt(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		server, err := zkembed.Start(zkembed.WithAddr(""))
		require.NoError(t, err)
		defer server.Close()
		k, err := NewKeeper(Config{
			Config: servers.Config{Servers: []string{server.Addr()}, Dial: server.DialContext}, Timeout: 10 * time.Second,
			Log: slog.New(slog.DiscardHandler), Notify: func(Change, *Session) {},
		})
		require.NoError(t, err)
		defer k.Close(context.Background())
		s, err := k.Session(context.Background())
		require.NoError(t, err)
		older := Attempt{armed{"/x", Data}, &Watch{path: "/x"}, &setting{over: make(chan struct{})}, false}
		older.watch.setting = older.setting
		s.Watches.set[Data]["/x"] = older.watch
		require.NoError(t, s.EnsurePath(context.Background(), "/x", zk.WorldACL(zk.PermAll)))
		set := make(chan error, 1)
		go func() {
			_, err := s.Watches.Data(context.Background(), "/x")
			set <- err
		}()
		synctest.Wait()
		s.Watches.end(older, zk.ErrNoNode)
		require.NoError(t, <-set)
		require.NotNil(t, s.Watches.Get(Data, "/x"))
	})
}
