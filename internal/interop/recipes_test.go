package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// sessions is the longest session time-out the programs ask for.
const sessions = 10 * time.Second

// recipesEnd is how long a program of recipes may run; it gives up by itself
// before.
const recipesEnd = 2 * time.Minute

func TestKazoosRecipesWorkOnTheServer(t *testing.T) {
	t.Parallel()
	recipes := python(t, "recipes.py")
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		t.Parallel()
		runRecipes(t, w, recipes, "Lock", "LockOfALostSession", "LockOfAKilledProcess", "ReadWriteLock", "Semaphore",
			"Election", "LockingQueue", "Queue", "Counter", "Barrier", "DoubleBarrier", "Transaction", "Watches",
			"Session", "ACL")
	})
}

func TestCuratorsRecipesWorkOnTheServer(t *testing.T) {
	t.Parallel()
	recipes := java(t, "Recipes")
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
	for line := range linesUntil(t, child, recipesEnd) {
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
	require.Zero(t, child.ExitCode(10*time.Second))
}

// linesUntil yields what a child writes to its end, and fails the test if that
// takes too long.
func linesUntil(t *testing.T, child *zktest.ChildProcess, within time.Duration) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		timer := time.NewTimer(within)
		defer timer.Stop()
		for {
			select {
			case line, open := <-child.Lines():
				if !open || !yield(line) {
					return
				}
			case <-timer.C:
				t.Fatalf("the program still runs after %v", within)
			}
		}
	}
}
