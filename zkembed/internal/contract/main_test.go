package contract

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// target is a server that a promise is tested on.
type target struct {
	t    *testing.T
	addr string
	root string // exists, and is empty
	drop func(session int64) error
	end  func(session int64) error // expire
}

// each tests a promise on the embedded server and on a real one.
func each(t *testing.T, promise func(t *testing.T, s target)) {
	t.Run("embedded", func(t *testing.T) {
		zktest.Require(t, zktest.Embedded)
		s, err := zkembed.Start(zkembed.WithTick(zktest.DefaultTick), zkembed.WithReaper(0),
			zkembed.WithSessionTimeouts(200*time.Millisecond, 600*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		promise(t, target{t, s.Addr(), "/t", s.DropConn, s.ExpireSession}.prepare())
	})
	t.Run("real", func(t *testing.T) {
		w := zktest.New(t, zktest.Real)
		promise(t, target{
			t, w.ConnectString(), w.Path(""),
			func(id int64) error { w.DropConn(id); return nil },
			func(id int64) error { w.ExpireSession(id); return nil },
		}.prepare())
	})
}

func (s target) prepare() target {
	c := s.connect()
	c.must(s.t, opCreate, create(s.root, nil, open, persistent))
	c.must(s.t, opClose, nil)
	return s
}

func (s target) path(rel string) string { return s.root + "/" + rel }

// connect makes a session that ends with the test.
func (s target) connect() *raw {
	s.t.Helper()
	c := connect(s.t, s.addr)
	s.t.Cleanup(func() { s.close(c) })
	return c
}

// close ends the session of c, over a new connection if the old one is gone.
func (s target) close(c *raw) {
	if _, err := c.call(opClose, nil); err == nil {
		return
	}
	n := dialTCP(s.t, s.addr)
	if _, err := n.hello(hello{timeout: c.timeout, session: c.session, passwd: c.passwd}); err == nil && n.session != 0 {
		_, _ = n.call(opClose, nil)
	}
}

func (c *raw) create(t testing.TB, path string, flags int32) string {
	t.Helper()
	return c.must(t, opCreate, create(path, nil, open, flags)).str()
}

func (c *raw) delete(t testing.TB, path string) {
	t.Helper()
	c.must(t, opDelete, versioned(path, -1))
}

func (c *raw) set(t testing.TB, path string, data []byte) stat {
	t.Helper()
	return c.must(t, opSetData, setData(path, data, -1)).stat()
}

func (c *raw) stat(t testing.TB, path string) stat {
	t.Helper()
	return c.must(t, opExists, watched(path, false)).stat()
}

// flush returns the events that are on their way.
func (c *raw) flush(t testing.TB) []event {
	t.Helper()
	c.must(t, opPing, nil)
	return c.takeEvents()
}

const (
	created         = 1
	deleted         = 2
	changed         = 3
	childrenChanged = 4
)

// The error codes that the promises name.
const (
	errMarshalling  = -5
	errUnimpl       = -6
	errBadArguments = -8
	errNoNode       = -101
	errNoAuth       = -102
	errBadVersion   = -103
	errNoChildren   = -108
	errNodeExists   = -110
	errNotEmpty     = -111
	errInvalidACL   = -114
	errAuthFailed   = -115
	errNoWatcher    = -121
)

func TestMain(m *testing.M) { zktest.Main(m) }
