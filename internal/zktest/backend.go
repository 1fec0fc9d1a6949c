package zktest

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

// Backend is a kind of server that a test runs against.
type Backend int

const (
	Embedded Backend = iota // zkembed, in the test's own process
	Real                    // one real server
	Ensemble                // a real ensemble of three
)

func (b Backend) String() string {
	return [...]string{Embedded: "embedded", Real: "real", Ensemble: "ensemble"}[b]
}

// Switch is the environment variable that selects the servers tests run
// against: "embedded", "real" (single and ensemble) or "all". Without it: the
// embedded server, and the real ones where they are installed.
const Switch = "ZKTEST_SERVERS"

// Each runs f as one subtest per backend, in a world of its own; against
// Embedded and Real if none is named. The worlds share one real server (or
// ensemble) per test binary, so f must not kill or stop it: see EachPrivate.
func Each(t *testing.T, f func(t *testing.T, w *World), backends ...Backend) {
	t.Helper()
	each(t, backends, func(t *testing.T, b Backend) { f(t, New(t, b)) })
}

// EachBeside is Each for a test that runs in parallel with others, with its
// backends in parallel.
func EachBeside(t *testing.T, f func(t *testing.T, w *World), backends ...Backend) {
	t.Helper()
	t.Parallel()
	each(t, backends, func(t *testing.T, b Backend) { t.Parallel(); f(t, New(t, b)) })
}

// EachPrivate is Each with servers of the test's own, which it may kill, stop,
// restart and wipe.
func EachPrivate(t *testing.T, f func(t *testing.T, w *World), backends ...Backend) {
	t.Helper()
	each(t, backends, func(t *testing.T, b Backend) { f(t, NewPrivate(t, b)) })
}

func each(t *testing.T, backends []Backend, f func(t *testing.T, b Backend)) {
	t.Helper()
	if len(backends) == 0 {
		backends = []Backend{Embedded, Real}
	}
	for _, b := range backends {
		t.Run(b.String(), func(t *testing.T) { f(t, b) })
	}
}

// Require skips the test if the switch leaves the backend out, or if real
// servers are not installed here. In that case it fails the test if the switch
// or the variable CI insists on them.
func Require(t testing.TB, b Backend) {
	t.Helper()
	skip, err := chosen(b)
	if err != nil {
		t.Fatal(err)
	}
	if skip != "" {
		t.Skip(skip)
	}
}

// chosen decides by this process's environment and machine.
func chosen(b Backend) (skip string, err error) {
	_, _, missing := findReal()
	return decide(b, os.Getenv(Switch), os.Getenv("CI") != "", missing)
}

// decide returns why a backend is left out ("" if it is not), or an error if it
// is needed and missing.
func decide(b Backend, choice string, ci bool, missing error) (skip string, err error) {
	switch choice {
	case "", "all", "real", "embedded":
	default:
		return "", fmt.Errorf("%s=%q: want embedded, real, all or nothing", Switch, choice)
	}
	switch {
	case b == Embedded && choice == "real", b != Embedded && choice == "embedded":
		return fmt.Sprintf("left out: %s=%s", Switch, choice), nil
	case b == Embedded || missing == nil:
		return "", nil
	case choice == "" && !ci:
		return fmt.Sprintf("left out: needs real ZooKeeper: %v", missing), nil
	}
	return "", fmt.Errorf("real ZooKeeper is needed (%s=%q, CI set: %t): %w", Switch, choice, ci, missing)
}

// shared are servers that all tests of this binary use, started by the first
// that asks.
type shared[S any] struct {
	once    sync.Once
	servers S
	err     error
}

func (s *shared[S]) get(t testing.TB, start func([]ServerOption) (S, error)) S {
	t.Helper()
	s.once.Do(func() { s.servers, s.err = start(nil) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.servers
}

// RequireReal returns a running real server of the test's own, which it may
// kill, stop, restart and wipe. Where there is no real server, the test is
// skipped or fails: see Require.
func RequireReal(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	return ownServers(t, Real, startAlone, opts)
}

// RequireEnsemble returns a running ensemble of three of the test's own.
func RequireEnsemble(t testing.TB, opts ...ServerOption) *Ens {
	t.Helper()
	return ownServers(t, Ensemble, startEnsemble, opts)
}

// ownServers starts servers that end with the test.
func ownServers[S interface{ close(bool, string) }](
	t testing.TB, b Backend, start func([]ServerOption) (S, error), opts []ServerOption,
) S {
	t.Helper()
	Require(t, b)
	s, err := start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(t.Failed(), t.Name()) })
	return s
}

// NewEmbedded returns a world on an embedded server of its own, with a real
// test server's tick and bounds of session timeouts unless the options say
// otherwise. New and Each call it without options.
func NewEmbedded(t testing.TB, opts ...zkembed.Option) *World {
	t.Helper()
	Require(t, Embedded)
	base := []zkembed.Option{
		zkembed.WithTick(DefaultTick), zkembed.WithSessionTimeouts(minSessionTimeout, maxSessionTimeout),
	}
	s, err := zkembed.Start(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorld(t, Embedded, s)
}

// Embedded returns the world's embedded server; it fails the test on another
// backend.
func (w *World) Embedded() *zkembed.Server {
	w.t.Helper()
	return backendAs[*zkembed.Server](w)
}

// embeddedEphemerals lists the ephemeral nodes below root.
func embeddedEphemerals(s *zkembed.Server, root string) (found []string) {
	for _, node := range s.Nodes() {
		if node.Stat.EphemeralOwner != 0 && inNamespace(node.Path, root) {
			found = append(found, describeEphemeral(node.Path, node.Stat.EphemeralOwner))
		}
	}
	return found
}

func describeEphemeral(path string, owner int64) string {
	return fmt.Sprintf("%s (session 0x%x)", path, owner)
}

const (
	minSessionTimeout = DefaultTick
	maxSessionTimeout = 10 * time.Minute
)
