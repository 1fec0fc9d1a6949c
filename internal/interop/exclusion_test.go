package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

const (
	contenderSession = 5 // seconds
	answersWithin    = 90 * time.Second
	rounds           = 25
)

// contender is a process that contends for the lock and does what it is told, line by line: see testdata/java/Hold.java
// for the commands.
type contender struct {
	*zktest.ChildProcess
	name string
}

// contend starts a contender for path; extra is what its program takes beyond the common arguments.
func contend(t *testing.T, w *zktest.World, p program, path, name string, extra ...string) contender {
	t.Helper()
	args := append([]string{w.ConnectString(), path, name, fmt.Sprint(contenderSession)}, extra...)
	return contender{p.start(t, args...), name}
}

func (c contender) wants(t *testing.T, answer string) {
	t.Helper()
	require.Equal(t, answer, c.Line(answersWithin), "answer of %s", c.name)
}

// TestContendersOfAllLanguagesExcludeEachOther covers the two dialects of lock directories. Curator cannot see Kazoo's
// own nodes, so in Curator's dialect Kazoo's recipe writes Curator's names.
func TestContendersOfAllLanguagesExcludeEachOther(t *testing.T) {
	t.Parallel()
	kazoo := python(t, "hold.py")
	curator := java(t, "Hold")
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		t.Parallel()
		w.SetTimeout(contenderSession * time.Second)
		admin := w.Admin()
		t.Run("in Curator's dialect", func(t *testing.T) {
			t.Parallel()
			path := w.Path("curator")
			exclude(t, admin, path,
				contend(t, w, curator, path, "curator-1"),
				contend(t, w, kazoo, path, "kazoo", "curator"),
				contend(t, w, curator, path, "curator-2"))
		})
		t.Run("in Kazoo's dialect", func(t *testing.T) {
			t.Parallel()
			path := w.Path("kazoo")
			exclude(t, admin, path,
				contend(t, w, kazoo, path, "kazoo-1", "kazoo"),
				contend(t, w, kazoo, path, "kazoo-2", "kazoo"))
		})
	})
}

// exclude proves that the contenders, which nobody else joins, exclude each other on path/lock.
func exclude(t *testing.T, admin *zk.Conn, path string, all ...contender) {
	t.Helper()
	for _, c := range all {
		c.wants(t, "ready")
	}
	othersAreBusyWhileOneHolds(t, all)
	noUpdateIsLost(t, admin, path, all)
	overlapsAreSeen(t, admin, path, all)
	theLockOutlivesItsHolders(t, admin, path, all)
}

// othersAreBusyWhileOneHolds lets each hold once while all others try.
func othersAreBusyWhileOneHolds(t *testing.T, all []contender) {
	t.Helper()
	for _, holder := range all {
		holder.Send("acquire 60000")
		holder.wants(t, "held")
		others := slices.DeleteFunc(slices.Clone(all), func(c contender) bool { return c.name == holder.name })
		for _, c := range others {
			c.Send("acquire 300")
		}
		for _, c := range others {
			c.wants(t, "busy")
		}
		holder.Send("release")
		holder.wants(t, "released")
	}
}

// noUpdateIsLost lets all work on one node at once. The first holds until all others stand in line, so that there is
// contention from the first round on.
func noUpdateIsLost(t *testing.T, admin *zk.Conn, path string, all []contender) {
	t.Helper()
	first, others := all[0], all[1:]
	first.Send("acquire 60000")
	first.wants(t, "held")
	for _, c := range others {
		c.Send(fmt.Sprintf("rounds %d", rounds))
	}
	awaitLine(t, admin, path, len(all))
	first.Send("release")
	first.wants(t, "released")
	first.Send(fmt.Sprintf("rounds %d", rounds))
	for _, c := range all {
		c.wants(t, fmt.Sprintf("done %d", rounds))
	}

	data, _, err := admin.Get(path + "/turns")
	require.NoError(t, err)
	turns := strings.Fields(string(data))
	count := map[string]int{}
	for _, name := range turns {
		count[name]++
	}
	want := map[string]int{}
	for _, c := range all {
		want[c.name] = rounds
	}
	require.Equal(t, want, count, "each turn's update is in the node")
	inLine := slices.Sorted(slices.Values(turns[:len(others)]))
	require.Len(t, slices.Compact(inLine), len(others), "everybody in line has a turn before anybody has two: %v", turns[:len(others)])
	awaitLine(t, admin, path, 0)
}

// overlapsAreSeen proves that a round which finds somebody inside says so.
func overlapsAreSeen(t *testing.T, admin *zk.Conn, path string, all []contender) {
	t.Helper()
	_, err := admin.Create(path+"/inside", []byte("test"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, c := range all {
		c.Send("rounds 1")
		c.wants(t, "overlap test")
		c.Send("release")
		c.wants(t, "released")
	}
	require.NoError(t, admin.Delete(path+"/inside", -1))
}

// theLockOutlivesItsHolders kills the holder and all waiters but the last, which then gets the lock.
func theLockOutlivesItsHolders(t *testing.T, admin *zk.Conn, path string, all []contender) {
	t.Helper()
	last := all[len(all)-1]
	for i, c := range all {
		c.Send("acquire 60000")
		if i == 0 {
			c.wants(t, "held")
		}
		awaitLine(t, admin, path, i+1)
	}
	for _, c := range all[:len(all)-1] {
		c.Kill()
	}
	last.wants(t, "held")
	awaitLine(t, admin, path, 1)
	last.Send("release")
	last.wants(t, "released")
	last.Send("quit")
	require.Zero(t, last.ExitCode(30*time.Second), "exit status of %s", last.name)
}

// awaitLine waits until n nodes are in the lock's directory.
func awaitLine(t *testing.T, admin *zk.Conn, path string, n int) {
	t.Helper()
	var names []string
	zktest.Eventually(t, answersWithin, func() bool {
		var err error
		names, _, err = admin.Children(path + "/lock")
		require.NoError(t, err)
		return len(names) == n
	}, "%d nodes in line at %s", n, path)
}
