//go:build linux

package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// trialsVariable says how many trials at random moments there are; see
// docs/testing.md.
const trialsVariable = "COORDDEMO_TRIALS"

// lanes is how many servers the trials are shared by.
const lanes = 8

// inLanes makes so many trials, each lane with a server of its own. A lane
// learns when the trials are over.
func inLanes(t *testing.T, trial func(t *testing.T, w *zktest.World, next func() bool)) {
	total := 4
	if s := os.Getenv(trialsVariable); s != "" {
		var err error
		total, err = strconv.Atoi(s)
		require.NoError(t, err, trialsVariable)
	}
	var made atomic.Int64
	for lane := range min(lanes, total) {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			trial(t, zktest.NewPrivate(t, zktest.Embedded), func() bool { return made.Add(1) <= int64(total) })
		})
	}
}

// between is a random duration.
func between(low, high time.Duration) time.Duration { return low + rand.N(high-low) }

func TestAnItemIsAcknowledgedOnlyWhenItsCommandWasNotInterrupted(t *testing.T) {
	t.Parallel()
	var interrupted, done atomic.Int64
	t.Run("outages", func(t *testing.T) { // the lanes must be over before the result is printed
		inLanes(t, func(t *testing.T, w *zktest.World, next func() bool) {
			diary := filepath.Join(t.TempDir(), "diary")
			for next() {
				require.NoError(t, os.WriteFile(diary, nil, 0o600))
				cmdtest.PutItems(t, w, "item")
				// A tidy command: it exits with 0 when it is asked to end.
				p := cmdtest.Mortal(t, w,
					cmdtest.Receiving(w,
						fmt.Sprintf(
							`trap 'echo interrupted >>%s; exit 0' TERM; echo begins; timeout %.2f tail -f /dev/null & wait; echo done >>%s`,
							diary, between(cmdtest.Short/2, 2*cmdtest.Short).Seconds(), diary))...)
				p.Line()
				<-time.After(between(0, cmdtest.Short/4))
				w.Freeze()
				<-time.After(between(cmdtest.Short*4/10, cmdtest.Short*7/10))
				w.Thaw()
				status := p.Exit()
				wrote, err := os.ReadFile(diary)
				require.NoError(t, err)
				switch what := strings.TrimSpace(string(wrote)); {
				case what == "done" && status == 0:
					done.Add(1)
					requireItems(t, w, 0)
					continue
				case what == "done": // unconfirmed: it may be delivered again
				default:
					interrupted.Add(1)
					require.NotZero(t, status, "an interrupted command counts as a success: %q", what)
				}
				require.Equal(t, term.ExitLost, status)
				requireItems(t, w, 1)
				require.Equal(t, 0, cmdtest.On(t, w, "queue", "take", w.Path("q")).Exit())
			}
		})
	})
	t.Logf("%d interrupted, %d done", interrupted.Load(), done.Load())
}

// requireItems waits until so many items are in the queue and no consumer has
// them.
func requireItems(t *testing.T, w *zktest.World, n int) {
	t.Helper()
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		taken, _, err := w.Admin().Children(w.Path("q/taken"))
		return err == nil && len(taken) == 0
	}, "no consumer has an item")
	entries, _, err := w.Admin().Children(w.Path("q/entries"))
	require.NoError(t, err)
	require.Len(t, entries, n)
}

// busyJobs writes the token again and again, also by processes that have groups
// of their own. It prints its own process id and the guard's.
const busyJobs = `w='while :; do echo $COORD_TOKEN; sleep 0.01; done >>'$DIARY; echo $PPID; ` +
	`timeout 1000 sh -c "timeout 1000 sh -c '$w' & $w" & eval "$w"`

func TestNothingWritesForAnOldHolderAfterANewOne(t *testing.T) {
	t.Parallel()
	for name, victims := range kills {
		t.Run(name, func(t *testing.T) {
			inLanes(t, func(t *testing.T, w *zktest.World, next func() bool) {
				diary := filepath.Join(t.TempDir(), "diary")
				script := "DIARY=" + diary + "; " + busyJobs
				p := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), script)...)
				guard := p.Number()
				kills := 0
				for ; next(); kills++ {
					successor := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), script)...).InLine(w, w.Path("l"), 2)
					<-time.After(between(0, zktest.SessionTimeout/4))
					for _, pid := range victims(p.Pid(), guard) {
						_ = unix.Kill(pid, syscall.SIGKILL)
					}
					p, guard = successor, successor.Number()
				}
				<-time.After(zktest.SessionTimeout / 10) // the last one writes, and so would what is left
				_ = unix.Kill(p.Pid(), syscall.SIGKILL)  // on a busy machine it may have lost its hold, and ended
				cmdtest.RequireGone(t, guard)
				requireInOrder(t, diary, kills)
			})
		})
	}
}

// requireInOrder reads a diary of tokens: none of an older holder comes after
// one of a newer.
func requireInOrder(t *testing.T, diary string, changes int) {
	t.Helper()
	wrote, err := os.ReadFile(diary)
	require.NoError(t, err)
	newest, holders := int64(0), 0
	for n, line := range strings.Fields(string(wrote)) {
		token, err := strconv.ParseInt(line, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, token, newest, "line %d was written for an old holder", n+1)
		if token > newest {
			newest = token
			holders++
		}
	}
	require.Greater(t, holders, changes/2, "holders write nothing, and this test proves nothing")
}
