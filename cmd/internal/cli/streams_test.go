//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitInVainIsReportedInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := patiently(t, w, sh(w.Path("l"), untilEOF)...)
	holder.line()
	require.Equal(t, 0, patiently(t, w, "barrier", "set", w.Path("b")).exit())
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{exitBusy, "held by another", sh(w.Path("l"), "echo never", "--try")},
		{exitTimeout, "no turn", sh(w.Path("l"), "echo never", "--timeout", "0.3")},
		{127, "command not found", []string{"lock", w.Path("l"), "--", "no-such-command"}},
		{exitTimeout, "no item", []string{"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "echo", "never"}},
		{exitTimeout, "no item", []string{"queue", "take", "--timeout", "0.3", w.Path("q")}},
		{exitFailed, "is empty", []string{"queue", "peek", w.Path("q")}},
		{exitTimeout, "is closed", []string{"barrier", "wait", "--timeout", "0.3", w.Path("b")}},
		{exitTimeout, "not all 2 came", []string{"doublebarrier", "-n", "2", "--timeout", "0.3", w.Path("d"), "--", "true"}},
	} {
		late := slices.Index(c.args, "0.3")
		awaitOutcome(t, late >= 0, func(timeout string) *process {
			args := append([]string{"--json"}, c.args...)
			if late >= 0 {
				args[late+1] = timeout
			}
			return patiently(t, w, args...)
		}, func(p *process) bool {
			require.Equal(t, c.status, p.exit(), "%q", c.args)
			objects := told(t, p.output()+"\n"+p.stderr.String())
			require.Len(t, objects, 1, "%q", c.args)
			story := objects[0]
			require.Contains(t, w.Path("l")+w.Path("q")+w.Path("b")+w.Path("d"), story["path"])
			require.EqualValues(t, c.status, story["status"])
			require.Contains(t, story["error"], c.says)
			require.Contains(t, p.stderr.String(), "coorddemo: ", "there is a message for people as well")
			return true
		})
	}
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
}

func TestAnInterruptedWaitIsReportedInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, args := range [][]string{
		{"queue", "take", w.Path("q")},
		{"queue", "receive", w.Path("q"), "--", "true"},
	} {
		p := on(t, w, append([]string{"--json"}, args...)...)
		awaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
		requireInterruptTold(t, p)
	}
	p := on(t, w, "--json", "doublebarrier", "-n", "2", w.Path("b"), "--", "true")
	inBarrier(t, w, 1)
	requireInterruptTold(t, p)
	require.Equal(t, 0, on(t, w, "barrier", "set", w.Path("set")).exit())
	p = on(t, w, "--json", "barrier", "wait", w.Path("set"))
	zktest.Eventually(t, soon, func() bool { return slices.Contains(w.Watched(), w.Path("set")) }, "it waits")
	requireInterruptTold(t, p)
}

func requireInterruptTold(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.exit())
	story := parse[map[string]any](t, p.output()+p.stderr.String())
	require.EqualValues(t, 130, story["status"])
	require.Contains(t, story["error"], "interrupt")
	require.NotEmpty(t, story["path"])
}

func TestTakeRemovesNothingWhereItsOutputIsClosed(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	take := strings.Join(append([]string{os.Args[0]}, append(target(w), "queue", "take", "--timeout", "20", w.Path("q"))...), " ")
	closed := startAs(t, exec.Command("sh", "-c", take+" >&-"))
	require.Equal(t, exitUsage, closed.exit())
	require.Contains(t, closed.stderr.String(), "standard output is closed")
	require.Equal(t, "1", on(t, w, "queue", "len", w.Path("q")).output())
	require.Zero(t, startAs(t, exec.Command("sh", "-c", take+" >/dev/null")).exit(), "that is wanted")
	require.Equal(t, "0", on(t, w, "queue", "len", w.Path("q")).output())
}
