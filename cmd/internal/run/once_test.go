//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// jobs is a command line for a job.
func jobs(w *zktest.World, key, script string, options ...string) []string {
	return append(append([]string{"once"}, options...), w.Path("jobs"), key, "--", "sh", "-c", script)
}

func TestACommandThatWasDoneIsNotRunAgain(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, "a key 1",
			cmdtest.On(t, w, jobs(w, "a key", `echo $COORD_KEY $COORD_ATTEMPT; test "$COORD_TOKEN" -gt 0`)...).Gives(0))
		cmdtest.On(t, w, jobs(w, "a key", "exit 9")...).Ends(0, `"a key" was done`, "status 0")
		p := cmdtest.On(t, w, append([]string{"--json"}, jobs(w, "a key", "exit 9")...)...)
		require.Equal(t, 0, p.Exit())
		require.Subset(t, cmdtest.TheObject(t, p, "once /jobs key -- "), map[string]any{"state": "done", "ran": false})
		cmdtest.On(t, w, "once", "--forget", w.Path("jobs"), "akey").Ends(term.ExitFailed, `nothing is on record of "akey"`)
		require.Zero(t, cmdtest.On(t, w, "once", "--forget", w.Path("jobs"), "a key").Exit())
		require.Equal(t, 9, cmdtest.On(t, w, jobs(w, "a key", "exit 9")...).Exit())
	})
}

func TestACommandThatRunsIsWaitedFor(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.On(t, w, jobs(w, "key", cmdtest.UntilEOF)...).Begun()
	cmdtest.On(t, w, jobs(w, "key", "exit 9", "--try")...).Ends(term.ExitBusy, "held")
	cmdtest.On(t, w, jobs(w, "key", "exit 9", "--timeout", "0.5")...).Ends(term.ExitTimeout, "not done")
	cmdtest.On(t, w, "once", "--forget", w.Path("jobs"), "key").Ends(term.ExitBusy, "being run")
	require.Contains(t, cmdtest.On(t, w, "once", "--list", w.Path("jobs")).Gives(0), "running")
	second := cmdtest.On(t, w, jobs(w, "key", "exit 9", "--verbose")...)
	second.Tells("held by")
	first.LetGo(5)
	require.Equal(t, 9, second.Exit(), "the first has failed")
	p := cmdtest.On(t, w, "--json", "once", "--list", w.Path("jobs"))
	jobs := cmdtest.Parse[struct{ Jobs []map[string]any }](t, p.Line()).Jobs
	require.Len(t, jobs, 1)
	require.Subset(t, jobs[0], map[string]any{"state": "failed", "failure": "exit status 9", "attempt": 2.0})
}

func TestACommandMayBeStartedSoManyTimesOnly(t *testing.T) {
	w := cmdtest.World(t)
	for range 2 {
		require.Equal(t, 3, cmdtest.On(t, w, jobs(w, "twice", "exit 3", "--attempts", "2")...).Exit())
	}
	cmdtest.On(t, w, jobs(w, "twice", "exit 0", "--attempts", "2")...).Ends(exitGivenUp, "exit status 3")
	victim := cmdtest.Mortal(t, w, jobs(w, "once", cmdtest.Stubborn, "--at-most-once")...)
	pid := victim.Number()
	victim.Signal(syscall.SIGKILL)
	cmdtest.RequireGone(t, pid)
	cmdtest.On(t, w, jobs(w, "once", "exit 0", "--at-most-once")...).Ends(exitGivenUp, "begun, and not ended")
	require.Zero(t, cmdtest.On(t, w, jobs(w, "once", "exit 0")...).Exit())
}

func TestTheNewestJobsAreKept(t *testing.T) {
	w := cmdtest.World(t)
	for _, key := range []string{"a", "b", "c"} {
		require.Zero(t, cmdtest.On(t, w, jobs(w, key, "true", "--keep-last", "2", "--keep", "1h")...).Exit())
	}
	lines := strings.Split(cmdtest.On(t, w, "once", "--list", w.Path("jobs")).Gives(0), "\n")
	require.Len(t, lines, 3, "%q", lines)
	require.Contains(t, lines[1], "b")
	require.Contains(t, lines[2], "c")
	require.Equal(t, "no jobs", cmdtest.On(t, w, "once", "--list", w.Path("others")).Gives(0))
}
