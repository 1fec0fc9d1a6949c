package zktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// graceAfterTimeout is how long after its session's time-out an ephemeral node of a dead client may still be there:
// the real server expires sessions in steps of a tick, and a new leader starts all time-outs afresh.
const graceAfterTimeout = 2 * time.Second

// cleanUp is run after the test and everything it registered itself: by then its clients are closed or dead.
func (w *World) cleanUp() {
	w.t.Helper()
	if w.admin != nil {
		w.admin.Close()
	}
	for _, p := range w.proxies {
		p.Close()
	}
	conn, err := connect(w.ConnectString(), SessionTimeout, func(zk.Event) {})
	if err != nil {
		if !w.private { // the test may have left its own server dead
			w.t.Errorf("cleaning up %s: %v", w.root, err)
		}
		return
	}
	defer conn.Close()
	w.checkNodes(conn)
	w.checkWatches()
	if err := removeTree(conn, w.root); err != nil {
		w.t.Errorf("cleaning up: %v", err)
	}
}

// checkNodes fails the test if an ephemeral node stays beyond the end of any session of the test.
func (w *World) checkNodes(conn *zk.Conn) {
	var left []string
	var err error
	gone := poll(w.timeout+graceAfterTimeout, func() bool {
		left, err = ephemerals(conn, w.root)
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
	var left map[string]int
	if !poll(graceAfterTimeout, func() bool { left = w.Watches(); return len(left) == 0 }) {
		w.t.Errorf("watches left after the test (sessions by path): %v", left)
	}
}

// ephemerals lists the ephemeral nodes below root.
func ephemerals(conn *zk.Conn, root string) ([]string, error) {
	var found []string
	err := walk(conn, root, func(path string, stat *zk.Stat) {
		if stat.EphemeralOwner != 0 {
			found = append(found, fmt.Sprintf("%s (session 0x%x)", path, stat.EphemeralOwner))
		}
	})
	return found, err
}

// walk visits root and everything below it, parents first. Nodes that vanish meanwhile are passed over.
func walk(conn *zk.Conn, root string, visit func(path string, stat *zk.Stat)) error {
	children, stat, err := conn.Children(root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", root, err)
	}
	visit(root, stat)
	for _, child := range children {
		if err := walk(conn, root+"/"+child, visit); err != nil {
			return err
		}
	}
	return nil
}

// removeTree deletes root and everything below it, deepest first.
func removeTree(conn *zk.Conn, root string) error {
	var paths []string
	if err := walk(conn, root, func(path string, _ *zk.Stat) { paths = append(paths, path) }); err != nil {
		return err
	}
	slices.Reverse(paths)
	for _, path := range paths {
		if err := conn.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("deleting %s: %w", path, err)
		}
	}
	return nil
}

// Watches returns how many sessions watch each path of the test's namespace. On the embedded server, which is the
// test's own, it is one count of all watches under the key "all".
func (w *World) Watches() map[string]int {
	w.t.Helper()
	watches := map[string]int{}
	for _, s := range w.realServers() {
		found, err := watchPaths(s.Addr(), w.root)
		if err != nil {
			continue // a dead server watches nothing
		}
		for path := range maps.Keys(found) {
			watches[path] += found[path]
		}
	}
	return watches
}

// WatchCount returns the sum of Watches.
func (w *World) WatchCount() int {
	sum := 0
	for _, n := range w.Watches() {
		sum += n
	}
	return sum
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
