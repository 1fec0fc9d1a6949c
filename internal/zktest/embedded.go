package zktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

// NewEmbedded returns a world on an embedded server of its own, with a real
// test server's tick and bounds of session time-outs unless the options say
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

// bringUp undoes what keeps the embedded server from expiring its sessions.
func (w *World) bringUp(s *zkembed.Server) {
	s.Heal()
	if w.crashed {
		s.Resume()
	}
}

const (
	minSessionTimeout = DefaultTick
	maxSessionTimeout = 10 * time.Minute
)
