package see

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

func TestTheKeyQEndsWhatIsShownAgainAndAgain(t *testing.T) {
	w := cmdtest.World(t)
	for verb, keys := range map[string]string{
		"top " + w.Path("l"): "q", "ls --watch " + w.Path(""): "x\nQ", "--json top " + w.Path("l"): "..q",
	} {
		tty := cmdtest.OnShell(t, w, "$D "+verb+cmdtest.Modes)
		tty.HandsOver(t)
		tty.Answers(keys, "done-0")
		tty.Unchanged(1)
	}
}

func TestTheModesOfTheTerminalAreRestoredHoweverTopEnds(t *testing.T) {
	w := cmdtest.World(t)
	for name, end := range map[string]struct {
		key    string
		signal syscall.Signal
		status string
	}{
		"the interrupt key": {cmdtest.Interrupt, 0, "0"},
		"the quit key":      {"\x1c", 0, "2"}, // the runtime's, with what all goroutines do
		"TERM":              {"", syscall.SIGTERM, "0"},
		"HUP":               {"", syscall.SIGHUP, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			tty := cmdtest.OnShell(t, w, `$D top `+w.Path("l")+cmdtest.Modes)
			tty.HandsOver(t)
			tty.Press(end.key)
			if end.signal != 0 {
				require.NoError(t, unix.Kill(-foreground(t, tty), end.signal))
			}
			tty.Sees("done-" + end.status)
			tty.Unchanged(1)
		})
	}
}

// foreground is the process group that has the terminal.
func foreground(t *testing.T, tty *cmdtest.Terminal) (group int) {
	t.Helper()
	raw := cmdtest.Must(tty.Keys.SyscallConn())
	require.NoError(t, raw.Control(func(fd uintptr) { group, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }))
	require.Positive(t, group)
	return group
}

func TestTheStopKeyGivesTheTerminalBackAsItWasAndForegroundTakesItAgain(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w, "$D top "+w.Path("l")+"\n")
	tty.HandsOver(t)
	tty.Answers(cmdtest.Stop, "Stopped")
	tty.IsTakenAgain()
}

func TestInTheBackgroundTopLeavesTheTerminalAlone(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w, "$D top --every 20ms "+w.Path("l")+" &\n")
	tty.Sees("there is nothing")
	tty.Answers("echo mine-$((1+1))\n", "mine-2")
	tty.IsTakenAgain()
}

func TestWherePagersReadTheKeysTopDoesNot(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnTerminal(t, w, "sh", "-c", cmdtest.Coorddemo(t)+" top "+w.Path("l")+" | cat")
	tty.Sees("there is nothing")
	tty.Press("typed")
	tty.Sees("typed") // the terminal echoes it
	tty.Press(cmdtest.Interrupt)
	_ = tty.Cmd.Wait()
}

// On a terminal, or with COLUMNS, lines fit the screen; in a pipe names are
// whole.
func TestWhatPeopleSeeFitsOnTheirScreens(t *testing.T) {
	w := cmdtest.World(t)
	scene(t, w)
	cmdtest.EveryRecipe(t, w)
	long := w.Path("locks/" + strings.Repeat("department/", 8) + "report")
	for _, guid := range []string{cmdtest.Guid1, cmdtest.Guid2} {
		cmdtest.Contend(t, w, long,
			map[string]string{"_c_" + guid + "-lock-000000000" + guid[:1]: strings.Repeat("application ", 8) + guid})
	}
	for _, verb := range []string{
		"inspect " + long, "inspect " + w.Path("app/jobs"), "inspect " + w.Path("import"), "inspect " + w.Path("archive"),
		"inspect " + w.Path("app/round"), "inspect " + w.Path("app/licence"), "ls " + cmdtest.Below(w),
		"graph " + cmdtest.Below(w), "doctor " + cmdtest.Below(w),
	} {
		for _, columns := range []int{80, 100} {
			cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), strings.Fields(verb)...)...)
			cmd.Env = []string{fmt.Sprint("COLUMNS=", columns)}
			for line := range strings.SplitSeq(cmdtest.StartAs(t, cmd).Output(), "\n") {
				require.LessOrEqual(t, term.Cells(line), columns, "%s: %s", verb, line)
			}
		}
	}
	whole := cmdtest.On(t, w, "inspect", long).Output()
	require.Contains(t, whole, long+": lock")
	require.Regexp(t, `(?m) _c_`+cmdtest.Guid2+`-lock-0000000002$`, whole)

	tty := cmdtest.OnTerminal(t, w, cmdtest.Coorddemo(t), "inspect", long)
	tty.Sees("0002\r\n")
	screen := strings.TrimRight(tty.Screen.String(), "\r\n")
	require.Contains(t, screen, "…")
	for line := range strings.SplitSeq(screen, "\r\n") {
		require.LessOrEqual(t, term.Cells(line), 80, line)
	}
}
