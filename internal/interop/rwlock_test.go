package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// rwlockRounds is divided by three kinds of rounds: see
// testdata/java/RwlockHold.java.
const rwlockRounds = 18

// rwlockInGo starts a contender of this module for a read/write lock.
func rwlockInGo(t *testing.T, w *zktest.World, path, name, dialect string) contender {
	t.Helper()
	return contender{zktest.Child(t, "rwlock-hold", append(contenderArgs(w, path, name), dialect)...), name}
}

// TestReadersAndWritersOfAllLanguagesShareOneLock covers the two dialects.
// Curator and Kazoo cannot see each other's nodes, so there is one test with
// each of them.
func TestReadersAndWritersOfAllLanguagesShareOneLock(t *testing.T) {
	t.Parallel()
	curator := Java(t, "RwlockHold")
	kazoo := Python(t, "rwlock_hold.py")
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		t.Parallel()
		w.SetTimeout(contenderSession * time.Second)
		t.Run("with Curator", func(t *testing.T) {
			t.Parallel()
			path := w.Path("curator")
			share(t, w, openAs(t, w, coord.Curator), path, "-__WRIT__", "-__READ__",
				contend(t, w, curator, path, "curator-1"), rwlockInGo(t, w, path, "go-1", "curator"),
				contend(t, w, curator, path, "curator-2"), rwlockInGo(t, w, path, "go-2", "curator"))
		})
		t.Run("with Kazoo", func(t *testing.T) {
			t.Parallel()
			path := w.Path("kazoo")
			share(t, w, openAs(t, w, coord.Kazoo), path, "__lock__", "__rlock__",
				contend(t, w, kazoo, path, "kazoo-1"), rwlockInGo(t, w, path, "go-1", "kazoo"),
				contend(t, w, kazoo, path, "kazoo-2"), rwlockInGo(t, w, path, "go-2", "kazoo"))
		})
	})
}

// share proves that the contenders keep to one read/write lock at path/lock.
func share(t *testing.T, w *zktest.World, asking *coord.Client, path, write, read string, all ...contender) {
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
	for _, c := range all {
		c.wants(t, "ready")
	}
	theWriterIsAlone(t, all)
	readersShare(t, w, path, all)
	aRequestStopsNoReader(t, w, asking, path, all)
	for i, c := range all {
		rest := append(slices.Clone(all[i+1:]), all[:i]...)
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
func theWriterIsAlone(t *testing.T, all []contender) {
	t.Helper()
	for i, writer := range all {
		writer.must(t, "write 60000", "held")
		others := append(slices.Clone(all[i+1:]), all[:i]...)
		for at, c := range others {
			c.Send([]string{"read 300", "write 300"}[at%2])
		}
		for _, c := range others {
			c.wants(t, "busy")
		}
		writer.must(t, "release", "released")
	}
}

// readersShare lets all but one read together, with the remaining one waiting
// to write behind them.
func readersShare(t *testing.T, w *zktest.World, path string, all []contender) {
	t.Helper()
	for i, writer := range all {
		readers := append(slices.Clone(all[i+1:]), all[:i]...)
		for _, c := range readers[:len(readers)-1] {
			c.must(t, "read 60000", "held")
		}
		writer.must(t, "write 300", "busy")
		awaitLine(t, w.Admin(), path, len(readers)-1) // its node goes in the background
		writer.Send("write 60000")
		awaitLine(t, w.Admin(), path, len(readers))
		late := readers[len(readers)-1]
		late.Send("read 60000")
		awaitLine(t, w.Admin(), path, len(all))
		for _, c := range readers[:len(readers)-1] {
			c.must(t, "release", "released")
		}
		writer.wants(t, "held")
		writer.must(t, "release", "released")
		late.wants(t, "held")
		late.must(t, "release", "released")
	}
}

// aRequestStopsNoReader asks every claim in line in front of readers and of a
// writer of each language.
func aRequestStopsNoReader(t *testing.T, w *zktest.World, asking *coord.Client, path string, all []contender) {
	t.Helper()
	for i, first := range all {
		others := append(slices.Clone(all[i+1:]), all[:i]...)
		readers, writer := others[:len(others)-1], others[len(others)-1]
		first.must(t, "write 60000", "held")
		for at, c := range readers {
			c.Send("read 60000")
			awaitLine(t, w.Admin(), path, at+2)
		}
		writer.Send("write 60000")
		awaitLine(t, w.Admin(), path, len(all))
		askAll(t, w.Admin(), asking, path+"/lock")
		first.must(t, "release", "released")
		for _, c := range readers {
			c.wants(t, "held")
		}
		for _, c := range readers {
			c.must(t, "release", "released")
		}
		writer.wants(t, "held")
		writer.must(t, "release", "released")
	}
}

// aDowngradeKeepsItsPlace has the first write and downgrade, with two readers
// and then a writer waiting.
func aDowngradeKeepsItsPlace(t *testing.T, w *zktest.World, path, write, read string, first contender, others []contender) {
	t.Helper()
	readers, writer := others[:len(others)-1], others[len(others)-1]
	first.must(t, "write 60000", "held")
	place := theNode(t, w, path, write)
	for i, c := range readers {
		c.Send("read 60000")
		awaitLine(t, w.Admin(), path, i+2)
	}
	writer.Send("write 1000")
	awaitLine(t, w.Admin(), path, len(others)+1)
	first.must(t, "downgrade", "downgraded")
	for _, c := range readers {
		c.wants(t, "held")
	}
	writer.wants(t, "busy")
	for _, c := range readers {
		c.must(t, "release", "released")
	}
	require.Equal(t, place, theNode(t, w, path, read), "the place in the line is the same")
	writer.Send("write 60000")
	awaitLine(t, w.Admin(), path, 2)
	first.must(t, "release", "released")
	writer.wants(t, "held")
	writer.must(t, "release", "released")
}

// aDowngradeLetsReadersIn has the first write and downgrade in its own way,
// with readers waiting: see testdata/java/RwlockHold.java.
func aDowngradeLetsReadersIn(t *testing.T, w *zktest.World, path string, first contender, others []contender) {
	t.Helper()
	first.must(t, "write 60000", "held")
	for i, c := range others {
		c.Send("read 60000")
		awaitLine(t, w.Admin(), path, i+2)
	}
	first.must(t, "downgrade", "downgraded")
	for _, c := range others {
		c.wants(t, "held")
	}
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
func noOverlapIsSeen(t *testing.T, w *zktest.World, path string, all []contender) {
	t.Helper()
	for _, c := range all {
		c.Send(fmt.Sprintf("rounds %d", rwlockRounds))
	}
	for _, c := range all {
		c.wants(t, fmt.Sprintf("done %d", rwlockRounds))
	}
	data, _, err := w.Admin().Get(path + "/turns")
	require.NoError(t, err)
	count := map[string]int{}
	for _, name := range strings.Fields(string(data)) {
		count[name]++
	}
	for _, c := range all {
		require.Equal(t, rwlockRounds*2/3, count[c.name], "updates of %s", c.name)
	}
	awaitLine(t, w.Admin(), path, 0)

	require.NoError(t, create(w, path+"/reading/test"))
	for _, c := range all {
		c.must(t, "rounds 1", "overlap reading")
		c.must(t, "release", "released")
		_ = w.Admin().Delete(path+"/writing", -1) // a writer that stops there may leave it
	}
	require.NoError(t, w.Admin().Delete(path+"/reading/test", -1))
}

func create(w *zktest.World, path string) error {
	_, err := w.Admin().Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// theReadersOutliveTheWriter kills the writer with all others waiting to read.
func theReadersOutliveTheWriter(t *testing.T, w *zktest.World, path string, all []contender) {
	t.Helper()
	all[0].must(t, "write 60000", "held")
	for i, c := range all[1:] {
		c.Send("read 60000")
		awaitLine(t, w.Admin(), path, i+2)
	}
	all[0].Kill()
	for _, c := range all[1:] {
		c.wants(t, "held")
	}
	awaitLine(t, w.Admin(), path, len(all)-1)
	for _, c := range all[1:] {
		c.must(t, "release", "released")
		c.quit(t)
	}
}
