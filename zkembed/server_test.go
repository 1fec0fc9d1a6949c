package zkembed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// hosts names one server for ever and asks go-zookeeper to pause between two
// rounds of attempts; without the pause virtual time stands still.
type hosts string

func (h hosts) Init([]string) error  { return nil }
func (h hosts) Len() int             { return 1 }
func (h hosts) Next() (string, bool) { return string(h), true }
func (h hosts) Connected()           {}

// start runs a server for one test.
func start(t *testing.T, opts ...zkembed.Option) *zkembed.Server {
	t.Helper()
	s, err := zkembed.Start(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// client connects go-zookeeper and waits for its session.
func client(t *testing.T, s *zkembed.Server, timeout time.Duration) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{s.Addr()}, timeout,
		zk.WithDialer(s.Dial), zk.WithLogger(quiet{}), zk.WithHostProvider(hosts(s.Addr())))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	for e := range events {
		if e.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

func TestAClientOverTCPCreatesReadsAndDeletes(t *testing.T) {
	s := start(t)
	c, _, err := zk.Connect([]string{s.Addr()}, 5*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer c.Close()
	path, err := c.Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.Equal(t, "/a", path)
	data, stat, err := c.Get("/a")
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	require.EqualValues(t, 1, stat.DataLength)
	require.NoError(t, c.Delete("/a", 0))
	ok, _, err := c.Exists("/a")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestASessionLivesByItsPingsAndExpiresWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, zkembed.WithAddr(""))
		c := client(t, s, 30*time.Second)
		_, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.Len(t, s.Nodes(), 1)
		p := s.Partition(zkembed.Cut{})
		time.Sleep(33 * time.Second)
		require.Empty(t, s.Nodes())
		p.Heal()
	})
}
