//go:build linux || darwin || freebsd || openbsd

package run

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitInVainIsReportedInJSON(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("b")).Exit())
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{term.ExitBusy, "try " + w.Path("l") + `: held by "sh `, cmdtest.Sh(w.Path("l"), "echo never", "--try")},
		{term.ExitTimeout, "no turn", cmdtest.Sh(w.Path("l"), "echo never", "--timeout", "0.3")},
		{127, "command not found", []string{"lock", w.Path("l"), "--", "no-such-command"}},
		{term.ExitTimeout, "no item", []string{"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "echo", "never"}},
		{term.ExitTimeout, "no item", []string{"queue", "take", "--timeout", "0.3", w.Path("q")}},
		{term.ExitFailed, "is empty", []string{"queue", "peek", w.Path("q")}},
		{term.ExitTimeout, "is closed", []string{"barrier", "wait", "--timeout", "0.3", w.Path("b")}},
		{term.ExitTimeout, "not all 2 came", []string{"doublebarrier", "-n", "2", "--timeout", "0.3", w.Path("d"), "--", "true"}},
	} {
		late := slices.Index(c.args, "0.3")
		cmdtest.AwaitOutcome(t, late >= 0, func(timeout string) *cmdtest.Process {
			args := append([]string{"--json"}, c.args...)
			if late >= 0 {
				args[late+1] = timeout
			}
			return cmdtest.On(t, w, args...)
		}, func(p *cmdtest.Process) bool {
			require.Equal(t, c.status, p.Exit(), "%q", c.args)
			objects := cmdtest.Told(t, p.Output()+"\n"+p.Stderr.String())
			require.Len(t, objects, 1, "%q", c.args)
			story := objects[0]
			require.Contains(t, w.Path("l")+w.Path("q")+w.Path("b")+w.Path("d"), story["path"])
			require.EqualValues(t, c.status, story["status"])
			require.Contains(t, story["error"], c.says)
			require.Contains(t, p.Stderr.String(), "coorddemo: ", "there is a message for people as well")
			return true
		})
	}
	holder.LetGo(5)
}

func TestAnInterruptedWaitIsReportedInJSON(t *testing.T) {
	w := cmdtest.World(t)
	for _, args := range [][]string{
		{"queue", "take", w.Path("q")},
		{"queue", "receive", w.Path("q"), "--", "true"},
	} {
		p := cmdtest.On(t, w, append([]string{"--json"}, args...)...)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
		requireInterruptTold(t, p)
	}
	p := cmdtest.On(t, w, "--json", "doublebarrier", "-n", "2", w.Path("b"), "--", "true")
	cmdtest.InBarrier(t, w, 1)
	requireInterruptTold(t, p)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("set")).Exit())
	p = cmdtest.On(t, w, "--json", "barrier", "wait", w.Path("set"))
	zktest.Eventually(t, cmdtest.Soon, func() bool { return slices.Contains(w.Watched(), w.Path("set")) }, "it waits")
	requireInterruptTold(t, p)
}

func requireInterruptTold(t *testing.T, p *cmdtest.Process) {
	t.Helper()
	p.EndsBy(syscall.SIGINT, 130)
	story := cmdtest.Parse[map[string]any](t, p.Output()+p.Stderr.String())
	require.EqualValues(t, 130, story["status"])
	require.Contains(t, story["error"], "interrupt")
	require.NotEmpty(t, story["path"])
}

// A daemon opens the null device once, for all three.
func TestAnOutputThatIsClosedIsClosedForTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	lock := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "lock", w.Path("l"), "--", "sh", "-c")...), " ")
	for how, status := range map[string]int{
		">&-": 4, "2>&-": 5, ">&- 2>&-": 4, "<&- >&- 2>&-": 4,
		"": 6, ">/dev/null 2>/dev/null": 6, "<&-": 6, "<>/dev/null >&0 2>&0": 6,
	} {
		require.Equal(t, status, cmdtest.StartAs(t, exec.Command("sh", "-c", lock+` '(: 3>&1) || exit 4; (: 3>&2) || exit 5; exit 6' `+how)).Exit(), how)
	}
}

func TestTakeRemovesNothingWhereItsOutputIsClosed(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	take := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "queue", "take", "--timeout", "20", w.Path("q"))...), " ")
	closed := cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >&-"))
	closed.Ends(term.ExitUsage, "standard output is closed")
	require.Equal(t, "1", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
	require.Zero(t, cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >/dev/null")).Exit(), "that is wanted")
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
}
