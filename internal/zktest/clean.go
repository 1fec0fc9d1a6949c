package zktest

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/zkembed"
)

// graceAfterTimeout is how long after its session's timeout an ephemeral node
// of a dead client may still be there: the real server expires sessions in
// steps of a tick, and a new leader starts all timeouts afresh.
const graceAfterTimeout = 2 * time.Second

// cleanUp is run after the test and everything it registered itself: by then
// its clients are closed or dead.
func (w *World) cleanUp() {
	w.t.Helper()
	if s, ok := w.servers.(*zkembed.Server); ok {
		s.Heal()
		if w.crashed {
			s.Resume() // a stopped server expires no session
		}
		w.checkNodes(func() ([]string, error) { return embeddedEphemerals(s, w.root), nil })
		w.checkWatches()
		return
	}
	serves := func(s *Server) bool { return s.Alive() && s.Mode() != "" }
	if w.private && !slices.ContainsFunc(w.realServers(), serves) {
		return // the test left its own servers dead; nothing can be left on them
	}
	conn, err := connect(w.ConnectString(), SessionTimeout, func(zk.Event) {})
	if err != nil {
		w.t.Errorf("cleaning up %s: %v", w.root, err)
		return
	}
	defer conn.Close()
	if err := conn.AddAuth("digest", []byte(superUser)); err != nil {
		w.t.Errorf("cleaning up %s: %v", w.root, err)
	}
	w.checkNodes(func() (found []string, err error) {
		err = walk(conn, w.root, func(path string, stat *zk.Stat) {
			if stat.EphemeralOwner != 0 {
				found = append(found, describeEphemeral(path, stat.EphemeralOwner))
			}
		})
		return found, err
	})
	w.checkWatches()
	if !poll(graceAfterTimeout, func() bool { err = removeTree(conn, w.root); return err == nil }) { // it may throttle
		w.t.Errorf("cleaning up: %v", err)
	}
}

// checkNodes fails the test if an ephemeral node stays beyond the end of any
// session of the test.
func (w *World) checkNodes(list func() ([]string, error)) {
	w.t.Helper()
	var left []string
	var err error
	gone := poll(w.timeout+graceAfterTimeout, func() bool {
		left, err = list()
		return err == nil && len(left) == 0
	})
	switch {
	case err != nil:
		w.t.Errorf("looking for ephemeral nodes in %s: %v", w.root, err)
	case !gone:
		w.t.Errorf("ephemeral nodes left %v after the test: %q", w.timeout+graceAfterTimeout, left)
	}
}

// checkWatches fails the test if a watch stays beyond the end of its clients.
func (w *World) checkWatches() {
	w.t.Helper()
	var left []string
	if !poll(graceAfterTimeout, func() bool { left = w.Watched(); return len(left) == 0 }) {
		w.t.Errorf("watches left after the test: %q", left)
	}
}

// Watched lists the paths of the test's namespace that some session watches
// now, one entry per session and server. On the embedded server it is one entry
// per path.
func (w *World) Watched() []string {
	w.t.Helper()
	var paths []string
	if s, ok := w.servers.(*zkembed.Server); ok {
		for _, path := range s.Watched() {
			if inNamespace(path, w.root) {
				paths = append(paths, path)
			}
		}
	}
	for _, s := range w.realServers() {
		found, err := s.watchPaths(w.root)
		if err != nil {
			continue // a dead server watches nothing
		}
		paths = append(paths, found...)
	}
	return paths
}

// realServers returns the world's real servers; none on the embedded backend.
func (w *World) realServers() []*Server {
	switch s := w.servers.(type) {
	case *Server:
		return []*Server{s}
	case *Ens:
		return s.Servers()
	}
	return nil
}
