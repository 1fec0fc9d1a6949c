package interop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

const (
	contenderSession = 6 // seconds
	answersWithin    = 90 * time.Second
	rounds           = 25
)

// contender is a process that contends for the lock and obeys commands, line by
// line: see testdata/java/Hold.java.
type contender struct {
	*zktest.ChildProcess
	name string
}

// contend starts a contender for path; extra is what its program takes beyond
// the common arguments.
func contend(t *testing.T, w *zktest.World, p Program, path, name string, extra ...string) contender {
	t.Helper()
	return contender{p.Start(t, append(contenderArgs(w, path, name), extra...)...), name}
}

// contendInGo starts a contender of this module: a child of that kind.
func contendInGo(t *testing.T, w *zktest.World, kind, path, name, dialect string) contender {
	t.Helper()
	return contender{zktest.Child(t, kind, append(contenderArgs(w, path, name), dialect)...), name}
}

func contenderArgs(w *zktest.World, path, name string) []string {
	return []string{w.ConnectString(), path, name, fmt.Sprint(contenderSession)}
}

func (c contender) wants(t *testing.T, answer string) {
	t.Helper()
	require.Equal(t, answer, c.Line(answersWithin), "answer of %s", c.name)
}

func (c contender) must(t *testing.T, command, answer string) {
	t.Helper()
	c.Send(command)
	c.wants(t, answer)
}

// quit ends the contender and its session in good order.
func (c contender) quit(t *testing.T) {
	t.Helper()
	c.Send("quit")
	require.Zero(t, c.ExitCode(answersWithin), "exit status of %s", c.name)
}

// contenders are several, which are spoken to one after the other.
type contenders []contender

func (all contenders) want(t *testing.T, answer string) {
	t.Helper()
	for _, c := range all {
		c.wants(t, answer)
	}
}

func (all contenders) send(command string) {
	for _, c := range all {
		c.Send(command)
	}
}

func (all contenders) must(t *testing.T, command, answer string) {
	t.Helper()
	for _, c := range all {
		c.must(t, command, answer)
	}
}

func (all contenders) quit(t *testing.T) {
	t.Helper()
	for _, c := range all {
		c.quit(t)
	}
}

// without are the others than number i, in turn from there.
func (all contenders) without(i int) contenders {
	return append(slices.Clone(all[i+1:]), all[:i]...)
}

// queue has all acquire, one behind the other; the first gets the lock.
func (all contenders) queue(t *testing.T, admin *zk.Conn, path string) {
	t.Helper()
	for i, c := range all {
		c.Send("acquire 60000")
		if i == 0 {
			c.wants(t, "held")
		}
		awaitLine(t, admin, path, i+1)
	}
}

// TestContendersOfAllLanguagesExcludeEachOther covers the two dialects of lock
// directories. Curator cannot see Kazoo's own nodes, so in Curator's dialect
// Kazoo's recipe writes Curator's names.
func TestContendersOfAllLanguagesExcludeEachOther(t *testing.T) {
	kazoo := Python(t, "hold.py")
	curator := Java(t, "Hold")
	withPeers(t, func(t *testing.T, w *zktest.World, _ string) {
		admin := w.Admin()
		t.Run("in Curator's dialect", func(t *testing.T) {
			t.Parallel()
			path := w.Path("curator")
			exclude(t, admin, openAs(t, w, coord.Curator), path, contenders{
				contend(t, w, curator, path, "curator"),
				contendInGo(t, w, "hold", path, "go-1", "curator"),
				contend(t, w, kazoo, path, "kazoo", "curator"),
				contendInGo(t, w, "hold", path, "go-2", "curator"),
			})
		})
		t.Run("in Kazoo's dialect", func(t *testing.T) {
			t.Parallel()
			path := w.Path("kazoo")
			exclude(t, admin, openAs(t, w, coord.Kazoo), path, contenders{
				contend(t, w, kazoo, path, "kazoo-1", "kazoo"),
				contendInGo(t, w, "hold", path, "go", "kazoo"),
				contend(t, w, kazoo, path, "kazoo-2", "kazoo"),
			})
		})
	})
}

// TestARequestReachesTheHolderInTheOtherLanguage covers revocation, which
// Curator and this module have.
func TestARequestReachesTheHolderInTheOtherLanguage(t *testing.T) {
	curator := Java(t, "Hold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		all := contenders{contend(t, w, curator, path, "curator"), contendInGo(t, w, "hold", path, "go", "curator")}
		all.want(t, "ready")
		for i, c := range all {
			c.must(t, "acquire 60000", "held")
			c.must(t, "asked 100", "unasked")
			all[1-i].must(t, "ask", "asking")
			c.must(t, "asked 60000", "asked")
			c.must(t, "release", "released")
		}
		all.quit(t)
	})
}

// TestALockWithADelayIsSharedWithOtherLanguages, which do not see its record.
func TestALockWithADelayIsSharedWithOtherLanguages(t *testing.T) {
	kazoo, curator := Python(t, "hold.py"), Java(t, "Hold")
	withPeers(t, func(t *testing.T, w *zktest.World, _ string) {
		for dialect, peer := range map[coord.Dialect]contender{
			coord.Curator: contend(t, w, curator, w.Path("curator"), "curator"),
			coord.Kazoo:   contend(t, w, kazoo, w.Path("kazoo"), "kazoo", "kazoo"),
		} {
			peer.wants(t, "ready")
			m, err := lock.New(openAs(t, w, dialect), w.Path(string(dialect))+"/lock", lock.Delay(time.Hour))
			require.NoError(t, err)
			h, err := m.Acquire(patient(t))
			require.NoError(t, err)
			peer.must(t, "acquire 100", "busy")
			recipe.Invalidate(h, nil) // and the record stays
			peer.must(t, "acquire 60000", "held")
			require.ErrorIs(t, coordtest.Err(m.TryAcquire(patient(t))), coord.ErrBusy)
			peer.must(t, "release", "released")
			_, err = m.TryAcquire(patient(t))
			require.ErrorIs(t, err, coord.ErrBusy)
			require.ErrorContains(t, err, "did not release")
			peer.quit(t)
		}
	})
}

// TestALockHeldInAnotherDialectIsRefused: the two cannot exclude each other, so
// this module does not try.
func TestALockHeldInAnotherDialectIsRefused(t *testing.T) {
	kazoo := Python(t, "hold.py")
	withPeers(t, func(t *testing.T, w *zktest.World, _ string) {
		for _, held := range []struct{ theirs, ours string }{{"kazoo", "curator"}, {"curator", "kazoo"}} {
			path := w.Path(held.theirs)
			other, own := contend(t, w, kazoo, path, "other", held.theirs), contendInGo(t, w, "hold", path, "own", held.ours)
			other.wants(t, "ready")
			own.wants(t, "ready")
			other.must(t, "acquire 60000", "held")
			own.must(t, "acquire 60000", "foreign")
			awaitLine(t, w.Admin(), path, 1)
			other.must(t, "release", "released")
			own.must(t, "acquire 60000", "held")
			own.quit(t)
			other.quit(t)
		}
	})
}

// exclude proves that the contenders, which no other joins, exclude each other
// on path/lock.
func exclude(t *testing.T, admin *zk.Conn, asking *coord.Client, path string, all contenders) {
	t.Helper()
	all.want(t, "ready")
	othersAreBusyWhileOneHolds(t, all)
	noUpdateIsLost(t, admin, path, all)
	overlapsAreSeen(t, admin, path, all)
	aRequestEndsNoWait(t, admin, asking, path, all)
	theLockOutlivesItsHolders(t, admin, path, all)
}

// othersAreBusyWhileOneHolds lets each hold once while all others try.
func othersAreBusyWhileOneHolds(t *testing.T, all contenders) {
	t.Helper()
	for i, holder := range all {
		holder.must(t, "acquire 60000", "held")
		others := all.without(i)
		others.send("acquire 300")
		others.want(t, "busy")
		holder.must(t, "release", "released")
	}
}

// noUpdateIsLost lets all work on one node together. The first holds until all
// others stand in line: there is contention from the first round on.
func noUpdateIsLost(t *testing.T, admin *zk.Conn, path string, all contenders) {
	t.Helper()
	first, others := all[0], all[1:]
	first.must(t, "acquire 60000", "held")
	others.send(fmt.Sprintf("rounds %d", rounds))
	awaitLine(t, admin, path, len(all))
	first.must(t, "release", "released")
	first.Send(fmt.Sprintf("rounds %d", rounds))
	all.want(t, fmt.Sprintf("done %d", rounds))

	turns, count := turnsAt(t, admin, path)
	want := map[string]int{}
	for _, c := range all {
		want[c.name] = rounds
	}
	require.Equal(t, want, count, "each turn's update is in the node")
	inLine := turns[:len(others)]
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(inLine))), len(others),
		"each in line has a turn before any has two: %v", inLine)
	awaitLine(t, admin, path, 0)
}

// turnsAt are the names of those who had turns, in order, and how many each
// had.
func turnsAt(t *testing.T, admin *zk.Conn, path string) (turns []string, count map[string]int) {
	t.Helper()
	data, _, err := admin.Get(path + "/turns")
	require.NoError(t, err)
	turns, count = strings.Fields(string(data)), map[string]int{}
	for _, name := range turns {
		count[name]++
	}
	return turns, count
}

// overlapsAreSeen proves that a round which finds another holder says so.
func overlapsAreSeen(t *testing.T, admin *zk.Conn, path string, all contenders) {
	t.Helper()
	_, err := admin.Create(path+"/inside", []byte("test"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, c := range all {
		c.must(t, "rounds 1", "overlap test")
		c.must(t, "release", "released")
	}
	require.NoError(t, admin.Delete(path+"/inside", -1))
}

// aRequestEndsNoWait asks every claim in line, in front of waiters of each
// language, and then lets all go one after the other: a request that used up
// the watch of the waiter behind would end the line.
func aRequestEndsNoWait(t *testing.T, admin *zk.Conn, asking *coord.Client, path string, all contenders) {
	t.Helper()
	for i := range all {
		turned := append(all[i:i+1:i+1], all.without(i)...)
		turned.queue(t, admin, path)
		askAll(t, admin, asking, path+"/lock")
		for at, c := range turned {
			if at > 0 {
				c.wants(t, "held")
			}
			c.must(t, "release", "released")
		}
	}
}

// askAll asks each claim in dir to give up, after a moment: by then all watch
// those they wait for.
func askAll(t *testing.T, admin *zk.Conn, asking *coord.Client, dir string) {
	t.Helper()
	pause(t)
	names, _, err := admin.Children(dir)
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, inspect.Revoke(patient(t), asking, dir+"/"+name))
	}
}

// pause gives the waiters the time to set their watches, which nothing shows.
func pause(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(300 * time.Millisecond):
	case <-t.Context().Done():
	}
}

// theLockOutlivesItsHolders kills the holder and all waiters but the last,
// which then gets the lock.
func theLockOutlivesItsHolders(t *testing.T, admin *zk.Conn, path string, all contenders) {
	t.Helper()
	last := all[len(all)-1]
	all.queue(t, admin, path)
	for _, c := range all[:len(all)-1] {
		c.Kill()
	}
	last.wants(t, "held")
	awaitLine(t, admin, path, 1)
	last.must(t, "release", "released")
	last.quit(t)
}

// awaitLine waits until n nodes are in the lock's directory.
func awaitLine(t *testing.T, admin *zk.Conn, path string, n int) {
	t.Helper()
	var names []string
	zktest.Eventually(t, answersWithin, func() bool {
		var err error
		names, _, err = admin.Children(path + "/lock")
		if !errors.Is(err, zk.ErrNoNode) { // as good as empty
			require.NoError(t, err)
		}
		return len(names) == n
	}, "%d nodes in line at %s", n, path)
}
