package zkembed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var open = zk.WorldACL(zk.PermAll)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// hosts names one server for ever, and asks go-zookeeper to pause after every
// attempt: without the pause virtual time stands still.
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

// virtual runs a test in virtual time, on a server without TCP.
func virtual(t *testing.T, f func(t *testing.T, s *zkembed.Server)) {
	coordtest.Virtual(t, func(t *testing.T) {
		f(t, start(t, zkembed.WithAddr(""), zkembed.WithTick(time.Second)))
	})
}

// T is the session time-out of the tests' clients.
const T = 10 * time.Second

// client connects go-zookeeper and returns when it has a session.
func client(t *testing.T, s *zkembed.Server) *zk.Conn {
	t.Helper()
	session := make(chan struct{}, 100)
	c, events, err := zk.Connect([]string{s.Addr()}, T,
		zk.WithDialer(s.Dial), zk.WithLogger(quiet{}), zk.WithHostProvider(hosts(s.Addr())),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession {
				session <- struct{}{}
			}
		}))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	<-session
	return c
}

func create(t *testing.T, c *zk.Conn, path string, flags int32) string {
	t.Helper()
	p, err := c.Create(path, nil, flags, open)
	require.NoError(t, err)
	return p
}

// awaitQuiet waits, in virtual time, until a client is connected and quiet.
// go-zookeeper fails requests while it is not connected, and it races with
// itself (over its last zxid) when they meet its setWatches.
func awaitQuiet(c *zk.Conn) {
	for synctest.Wait(); c.State() != zk.StateHasSession; synctest.Wait() {
		time.Sleep(100 * time.Millisecond)
	}
}

// paths are the nodes of a server.
func paths(s *zkembed.Server) []string {
	out := []string{}
	for _, n := range s.Nodes() {
		out = append(out, n.Path)
	}
	return out
}
