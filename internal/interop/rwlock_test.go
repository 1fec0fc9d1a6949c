package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// rwlockRounds is divided by three kinds of rounds: see
// testdata/java/RwlockHold.java.
const rwlockRounds = 18

// TestReadersAndWritersOfAllLanguagesShareOneLock covers the two dialects.
// Curator and Kazoo cannot see each other's nodes, so there is one test with
// each of them.
func TestReadersAndWritersOfAllLanguagesShareOneLock(t *testing.T) {
	curator := Java(t, "RwlockHold")
	kazoo := Python(t, "rwlock_hold.py")
	withPeers(t, func(t *testing.T, w *zktest.World, _ string) {
		t.Run("with Curator", func(t *testing.T) {
			t.Parallel()
			path := w.Path("curator")
			share(t, w, openAs(t, w, coord.Curator), path, "-__WRIT__", "-__READ__", contenders{
				contend(t, w, curator, path, "curator-1"), contendInGo(t, w, "rwlock-hold", path, "go-1", "curator"),
				contend(t, w, curator, path, "curator-2"), contendInGo(t, w, "rwlock-hold", path, "go-2", "curator"),
			})
		})
		t.Run("with Kazoo", func(t *testing.T) {
			t.Parallel()
			path := w.Path("kazoo")
			share(t, w, openAs(t, w, coord.Kazoo), path, "__lock__", "__rlock__", contenders{
				contend(t, w, kazoo, path, "kazoo-1"), contendInGo(t, w, "rwlock-hold", path, "go-1", "kazoo"),
				contend(t, w, kazoo, path, "kazoo-2"), contendInGo(t, w, "rwlock-hold", path, "go-2", "kazoo"),
			})
		})
	})
}

// share proves that the contenders keep to one read/write lock at path/lock.
func share(t *testing.T, w *zktest.World, asking *coord.Client, path, write, read string, all contenders) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			line, _, err := w.Admin().Children(path + "/lock")
			t.Logf("in the line: %q, %v", line, err)
			for _, name := range line {
				data, _, err := w.Admin().Get(path + "/lock/" + name)
				t.Logf("%s is of %q, %v", name, data, err)
			}
		}
	})
	all.want(t, "ready")
	theWriterIsAlone(t, all)
	readersShare(t, w, path, all)
	aRequestStopsNoReader(t, w, asking, path, all)
	for i, c := range all {
		rest := all.without(i)
		switch name, _, _ := strings.Cut(c.name, "-"); name {
		case "go":
			aDowngradeKeepsItsPlace(t, w, path, write, read, c, rest)
		case "curator":
			aDowngradeLetsReadersIn(t, w, path, c, rest)
		}
	}
	noOverlapIsSeen(t, w, path, all)
	theReadersOutliveTheWriter(t, w, path, all)
}

// theWriterIsAlone lets each write once while all others try.
func theWriterIsAlone(t *testing.T, all contenders) {
	t.Helper()
	for i, writer := range all {
		writer.must(t, "write 60000", "held")
		others := all.without(i)
		for at, c := range others {
			c.Send([]string{"read 300", "write 300"}[at%2])
		}
		others.want(t, "busy")
		writer.must(t, "release", "released")
	}
}

// readersShare lets all but one read together, with the remaining one waiting
// to write behind them.
func readersShare(t *testing.T, w *zktest.World, path string, all contenders) {
	t.Helper()
	for i, writer := range all {
		readers := all.without(i)
		readers[:len(readers)-1].must(t, "read 60000", "held")
		writer.must(t, "write 300", "busy")
		awaitLine(t, w.Admin(), path, len(readers)-1) // its node goes in the background
		writer.Send("write 60000")
		awaitLine(t, w.Admin(), path, len(readers))
		late := readers[len(readers)-1]
		late.Send("read 60000")
		awaitLine(t, w.Admin(), path, len(all))
		readers[:len(readers)-1].must(t, "release", "released")
		writer.wants(t, "held")
		writer.must(t, "release", "released")
		late.wants(t, "held")
		late.must(t, "release", "released")
	}
}

// queueToRead has all wait to read behind the one that writes.
func (all contenders) queueToRead(t *testing.T, w *zktest.World, path string) {
	t.Helper()
	for i, c := range all {
		c.Send("read 60000")
		awaitLine(t, w.Admin(), path, i+2)
	}
}

// aRequestStopsNoReader asks every claim in line in front of readers and of a
// writer of each language.
func aRequestStopsNoReader(t *testing.T, w *zktest.World, asking *coord.Client, path string, all contenders) {
	t.Helper()
	for i, first := range all {
		others := all.without(i)
		readers, writer := others[:len(others)-1], others[len(others)-1]
		first.must(t, "write 60000", "held")
		readers.queueToRead(t, w, path)
		writer.Send("write 60000")
		awaitLine(t, w.Admin(), path, len(all))
		askAll(t, w.Admin(), asking, path+"/lock")
		first.must(t, "release", "released")
		readers.want(t, "held")
		readers.must(t, "release", "released")
		writer.wants(t, "held")
		writer.must(t, "release", "released")
	}
}

// aDowngradeKeepsItsPlace has the first write and downgrade, with two readers
// and then a writer waiting.
func aDowngradeKeepsItsPlace(
	t *testing.T, w *zktest.World, path, write, read string, first contender, others contenders,
) {
	t.Helper()
	readers, writer := others[:len(others)-1], others[len(others)-1]
	first.must(t, "write 60000", "held")
	place := theNode(t, w, path, write)
	readers.queueToRead(t, w, path)
	writer.Send("write 1000")
	awaitLine(t, w.Admin(), path, len(others)+1)
	first.must(t, "downgrade", "downgraded")
	readers.want(t, "held")
	writer.wants(t, "busy")
	readers.must(t, "release", "released")
	require.Equal(t, place, theNode(t, w, path, read), "the place in the line is the same")
	writer.Send("write 60000")
	awaitLine(t, w.Admin(), path, 2)
	first.must(t, "release", "released")
	writer.wants(t, "held")
	writer.must(t, "release", "released")
}

// aDowngradeLetsReadersIn has the first write and downgrade in its own way,
// with readers waiting: see testdata/java/RwlockHold.java.
func aDowngradeLetsReadersIn(t *testing.T, w *zktest.World, path string, first contender, others contenders) {
	t.Helper()
	first.must(t, "write 60000", "held")
	others.queueToRead(t, w, path)
	first.must(t, "downgrade", "downgraded")
	others.want(t, "held")
	for _, c := range others {
		c.must(t, "release", "released")
		c.must(t, "write 300", "busy")
	}
	first.must(t, "release", "released")
}

// theNode returns the sequence number of the only node in line, which must be
// of the kind.
func theNode(t *testing.T, w *zktest.World, path, kind string) string {
	t.Helper()
	awaitLine(t, w.Admin(), path, 1)
	names, _, err := w.Admin().Children(path + "/lock")
	require.NoError(t, err)
	_, number, found := strings.Cut(names[0], kind)
	require.True(t, found, "%s is not of the kind %s", names[0], kind)
	return number
}

// noOverlapIsSeen lets all work together, and shows that overlaps would have
// been seen.
func noOverlapIsSeen(t *testing.T, w *zktest.World, path string, all contenders) {
	t.Helper()
	all.send(fmt.Sprintf("rounds %d", rwlockRounds))
	all.want(t, fmt.Sprintf("done %d", rwlockRounds))
	_, count := turnsAt(t, w.Admin(), path)
	for _, c := range all {
		require.Equal(t, rwlockRounds*2/3, count[c.name], "updates of %s", c.name)
	}
	awaitLine(t, w.Admin(), path, 0)

	_, err := w.Admin().Create(path+"/reading/test", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	for _, c := range all {
		c.must(t, "rounds 1", "overlap reading")
		c.must(t, "release", "released")
		_ = w.Admin().Delete(path+"/writing", -1) // a writer that stops there may leave it
	}
	require.NoError(t, w.Admin().Delete(path+"/reading/test", -1))
}

// theReadersOutliveTheWriter kills the writer with all others waiting to read.
func theReadersOutliveTheWriter(t *testing.T, w *zktest.World, path string, all contenders) {
	t.Helper()
	all[0].must(t, "write 60000", "held")
	all[1:].queueToRead(t, w, path)
	all[0].Kill()
	all[1:].want(t, "held")
	awaitLine(t, w.Admin(), path, len(all)-1)
	for _, c := range all[1:] {
		c.must(t, "release", "released")
		c.quit(t)
	}
}
