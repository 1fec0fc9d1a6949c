package zktest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/zkembed"
)

// World is what a test sees of the servers: a namespace of its own, and means
// to tamper.
type World struct {
	t       testing.TB
	backend Backend
	private bool
	root    string
	servers servers
	timeout time.Duration // the longest session timeout clients of this test use
	crashed bool          // by Crash, and not yet recovered
	frozen  *zkembed.Partition

	mu      sync.Mutex // for what is made on demand
	admin   *zk.Conn
	proxies []*Proxy
}

// servers is what a world needs of any backend.
type servers interface {
	ConnectString() string
	ExpireSession(id int64) error
	DropConn(id int64) error
}

// New returns a world on the servers that the tests of this binary share; an
// embedded server is always the test's own. At the test's end the world checks
// that nothing is left in its namespace, and removes it.
func New(t testing.TB, b Backend) *World {
	t.Helper()
	Require(t, b)
	switch b {
	case Real:
		return newWorld(t, b, host.server.get(t, startAlone))
	case Ensemble:
		return newWorld(t, b, host.ens.get(t, startEnsemble))
	}
	return NewEmbedded(t)
}

// NewPrivate returns a world on servers of its own, which the test may kill,
// stop, restart and wipe. The options are for real servers only.
func NewPrivate(t testing.TB, b Backend, opts ...ServerOption) *World {
	t.Helper()
	var own servers
	switch b {
	case Real:
		own = RequireReal(t, opts...)
	case Ensemble:
		own = RequireEnsemble(t, opts...)
	default:
		return NewEmbedded(t)
	}
	w := newWorld(t, b, own)
	w.private = true
	return w
}

func newWorld(t testing.TB, b Backend, s servers) *World {
	w := &World{t: t, backend: b, servers: s, timeout: SessionTimeout, root: uniqueRoot(t.Name())}
	t.Cleanup(w.cleanUp)
	return w
}

// uniqueRoot makes a node name from a test's name. Several binaries never share
// a server, but one test may run several times against the same one.
func uniqueRoot(test string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, test)
	return fmt.Sprintf("/t-%.60s-%08x", name, rand.Uint32())
}

// SessionTimeout is the session timeout tests should use unless they need
// another: ten ticks of the test servers.
const SessionTimeout = 10 * DefaultTick

// SetTimeout sets the longest session timeout of the test's clients, if it is
// not SessionTimeout. A dead client's ephemeral nodes may outlive the test by
// two seconds more than that.
func (w *World) SetTimeout(d time.Duration) { w.timeout = d }

// Backend returns the kind of server.
func (w *World) Backend() Backend { return w.backend }

// ConnectString names the world's servers, without a chroot.
func (w *World) ConnectString() string { return w.servers.ConnectString() }

// Path returns a path in the test's own namespace: Path("a/b") is
// "/t-<test>-<number>/a/b", Path("") its root. Nothing exists there at first,
// not even the root.
func (w *World) Path(rel string) string {
	return strings.TrimSuffix(w.root+"/"+strings.Trim(rel, "/"), "/")
}

// Admin returns a plain client for setting up and tampering, connected straight
// to the servers. Its session lasts 30 s without a heartbeat, so it survives
// most faults. After WipeAndRestart it is of no more use: Connect again.
func (w *World) Admin() *zk.Conn {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.admin == nil {
		w.admin = Connect(w.t, w.ConnectString(), 30*time.Second)
	}
	return w.admin
}

// Real returns the world's single real server; it fails the test on another
// backend.
func (w *World) Real() *Server {
	w.t.Helper()
	return backendAs[*Server](w)
}

// Ensemble returns the world's ensemble; it fails the test on another backend.
func (w *World) Ensemble() *Ens {
	w.t.Helper()
	return backendAs[*Ens](w)
}

func backendAs[S any](w *World) S {
	w.t.Helper()
	s, ok := w.servers.(S)
	if !ok {
		w.t.Fatalf("this test runs on the backend %q, whose servers are of type %T", w.backend, w.servers)
	}
	return s
}

// ExpireSession ends a client's session as if it had expired: its ephemeral
// nodes go, and its client hears of it when it connects again.
func (w *World) ExpireSession(id int64) {
	w.t.Helper()
	if err := w.servers.ExpireSession(id); err != nil {
		w.t.Fatalf("expiring session 0x%x: %v", id, err)
	}
}

// DropConn makes the server close the connection of a session; the session
// lives on.
func (w *World) DropConn(id int64) {
	w.t.Helper()
	if err := w.servers.DropConn(id); err != nil {
		w.t.Fatalf("dropping the connection of session 0x%x: %v", id, err)
	}
}

// Proxy returns a proxy in front of the first server, made on demand. Clients
// that connect to its address go through it; Admin does not.
func (w *World) Proxy() *Proxy {
	w.t.Helper()
	return w.Proxies()[0]
}

// Proxies returns one proxy per server, in the order of ConnectString, made on
// demand.
func (w *World) Proxies() []*Proxy {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proxies == nil {
		for addr := range strings.SplitSeq(w.ConnectString(), ",") {
			w.proxies = append(w.proxies, NewProxy(w.t, addr))
		}
	}
	return w.proxies
}

// ProxyConnectString names the proxies of all servers.
func (w *World) ProxyConnectString() string {
	w.t.Helper()
	var addrs []string
	for _, p := range w.Proxies() {
		addrs = append(addrs, p.Addr())
	}
	return strings.Join(addrs, ",")
}
