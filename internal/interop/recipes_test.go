package interop

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// sessions is the longest session timeout the programs ask for.
const sessions = 10 * time.Second

// recipesEnd is how long a program of recipes may run; it gives up by itself
// before.
const recipesEnd = 2 * time.Minute

func TestKazoosRecipesWorkOnTheServer(t *testing.T) {
	recipes := Python(t, "recipes.py")
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		runRecipes(t, w, recipes, "Lock", "LockOfALostSession", "LockOfAKilledProcess", "ReadWriteLock", "Semaphore",
			"Election", "LockingQueue", "Queue", "Counter", "Barrier", "DoubleBarrier", "Transaction", "Watches",
			"Session", "ACL")
	})
}

func TestCuratorsRecipesWorkOnTheServer(t *testing.T) {
	t.Parallel()
	recipes := Java(t, "Recipes")
	for _, backend := range []zktest.Backend{zktest.Embedded, zktest.Real} {
		t.Run(backend.String(), func(t *testing.T) {
			w := reapingWorld(t, backend)
			t.Parallel()
			runRecipes(t, w, recipes, "InterProcessMutex", "Revocation", "InterProcessReadWriteLock",
				"InterProcessSemaphoreV2", "LeaderLatch", "DistributedDoubleBarrier", "PersistentNode", "CuratorCache",
				"Watches", "NodeKinds", "Transaction", "Counters", "SimpleDistributedQueue", "Reads", "ACLs",
				"PersistentWatches", "RemovedWatches")
			usedContainersAndOldNodesAreReaped(t, w)
		})
	}
}

// reapingWorld is a world on a server that looks for empty containers and
// overdue TTL nodes so often that a test can wait for it. Curator's recipes
// have to put up with their directories going away meanwhile.
func reapingWorld(t *testing.T, b zktest.Backend) *zktest.World {
	t.Helper()
	const every = 500 * time.Millisecond
	if b == zktest.Embedded {
		return zktest.NewEmbedded(t, zkembed.WithReaper(every))
	}
	return zktest.NewPrivate(t, b, zktest.WithContainerCheck(every))
}

// usedContainersAndOldNodesAreReaped looks at what Curator left behind: see
// nodeKinds in testdata/java/DataChecks.java.
func usedContainersAndOldNodesAreReaped(t *testing.T, w *zktest.World) {
	t.Helper()
	exists := func(path string) bool {
		found, _, err := w.Admin().Exists(w.Path(path))
		require.NoError(t, err)
		return found
	}
	for _, path := range []string{"reap/container", "reap/ttl"} {
		zktest.Eventually(t, 30*time.Second, func() bool { return !exists(path) }, "the server removes %s", path)
	}
	require.True(t, exists("reap/ttl-later"), "a node stays until its TTL is over")
	require.True(t, exists("NodeKinds/empty"), "a container that never had a child stays")
}

// runRecipes runs a program of checks and shows each of its sections as a
// subtest. Every section named must have passed at least one check, and there
// must be no other.
func runRecipes(t *testing.T, w *zktest.World, recipes Program, sections ...string) {
	t.Helper()
	w.SetTimeout(sessions)
	child := recipes.Start(t, w.ConnectString(), w.Path(""))
	child.CloseStdin()
	passed, failed := map[string][]string{}, map[string][]string{}
	defer time.AfterFunc(recipesEnd, child.Kill).Stop()
	for line := range child.Lines() {
		verdict, rest, _ := strings.Cut(line, "\t")
		section, sentence, ok := strings.Cut(rest, "\t")
		require.True(t, ok && (verdict == "ok" || verdict == "fail"), "not a line of verdict, section and sentence: %q", line)
		require.Contains(t, sections, section)
		if verdict == "ok" {
			passed[section] = append(passed[section], sentence)
		} else {
			failed[section] = append(failed[section], sentence)
		}
	}
	for _, section := range sections {
		t.Run(section, func(t *testing.T) {
			t.Logf("passed:\n%s", strings.Join(passed[section], "\n"))
			require.Empty(t, failed[section])
			require.NotEmpty(t, passed[section], "the program ended without a check of %s", section)
		})
	}
	require.Zero(t, child.ExitCode(10*time.Second), "-1 if it was killed, after %v", recipesEnd)
}

// These are the steps of docs/interop.md that no other test takes.

// own returns a contender of this module in this process.
func own(t *testing.T, w *zktest.World, path, name string, dialect coord.Dialect) holder {
	t.Helper()
	h, err := newHolder(w.ConnectString(), path, name, fmt.Sprint(contenderSession), string(dialect))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.client.Close(h.ctx)) })
	return h
}

// turn waits for the lock.
func turn(h holder) error {
	answer, err := h.acquire(h.mutex.Acquire, ownTurn)
	if err == nil && answer != "held" {
		err = errors.New(answer)
	}
	return err
}

// work does rounds as contenders do; enter and leave take what excludes them.
func work(t *testing.T, enter, leave func() error, at ...holder) {
	for range rounds {
		if err := enter(); err != nil {
			t.Errorf("no turn: %v", err)
			return
		}
		for _, h := range at {
			if overlap, err := h.inside(); overlap != "" || err != nil {
				t.Errorf("%s: %q, %v", h.name, overlap, err)
				return
			}
		}
		if err := leave(); err != nil {
			t.Errorf("not released: %v", err)
			return
		}
	}
}

// requireTurns checks that no turn was lost, as it would be if two had
// overlapped.
func requireTurns(t *testing.T, w *zktest.World, path string, names ...string) {
	t.Helper()
	_, count := turnsAt(t, w.Admin(), path)
	for _, name := range names {
		require.Equal(t, rounds, count[name], name)
	}
}

// go-zookeeper's own lock writes other GUIDs than Curator, and stands in the
// same line.
func TestGoZookeepersLockAndOthersExcludeEachOther(t *testing.T) {
	curator := Java(t, "Hold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		theirs := contend(t, w, curator, path, "curator")
		theirs.wants(t, "ready")
		ours, plain := own(t, w, path, "ours", coord.Curator), own(t, w, path, "plain", coord.Curator)
		l := zk.NewLock(zktest.Connect(t, w.ConnectString(), contenderSession*time.Second), path+"/lock",
			zk.WorldACL(zk.PermAll))

		require.NoError(t, l.Lock()) // each sees that the other holds
		theirs.must(t, "acquire 300", "busy")
		_, err := ours.mutex.TryAcquire(patient(t))
		require.ErrorIs(t, err, coord.ErrBusy)
		require.NoError(t, l.Unlock())

		var all sync.WaitGroup
		theirs.Send(fmt.Sprintf("rounds %d", rounds))
		all.Go(func() { work(t, l.Lock, l.Unlock, plain) })
		all.Go(func() {
			work(t, func() error { return turn(ours) }, func() error { return ours.hold.Release(ours.ctx) }, ours)
		})
		theirs.wants(t, fmt.Sprintf("done %d", rounds))
		all.Wait()
		requireTurns(t, w, path, "curator", "plain", "ours")
		theirs.quit(t)
	})
}

// A fleet changes the dialect, or the path, by programs that take the former
// lock and then the new one: they exclude first the programs that take only the
// former lock, and then the programs that take only the new one.
func TestAFleetMovesFromOneLockToAnotherByTakingBoth(t *testing.T) {
	kazoo, curator := Python(t, "hold.py"), Java(t, "Hold")
	withPeers(t, func(t *testing.T, w *zktest.World, _ string) {
		from, to := w.Path("from"), w.Path("to")
		former, next := own(t, w, from, "both", coord.Kazoo), own(t, w, to, "both", coord.Curator)
		enter := func() error {
			if err := turn(former); err != nil {
				return err
			}
			return turn(next)
		}
		leave := func() error {
			if err := next.hold.Release(next.ctx); err != nil {
				return err
			}
			return former.hold.Release(former.ctx)
		}
		for _, phase := range []struct {
			path  string
			other contender
		}{
			{from, contend(t, w, kazoo, from, "former", "kazoo")},
			{to, contend(t, w, curator, to, "next")},
		} {
			phase.other.wants(t, "ready")
			var both sync.WaitGroup
			phase.other.Send(fmt.Sprintf("rounds %d", rounds))
			both.Go(func() { work(t, enter, leave, former, next) })
			phase.other.wants(t, fmt.Sprintf("done %d", rounds))
			both.Wait()
			requireTurns(t, w, phase.path, phase.other.name)
			phase.other.quit(t)
		}
	})
}
