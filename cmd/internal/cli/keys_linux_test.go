package cli

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// modes has a shell tell whether its terminal collects lines and shows what is
// typed, in words that the echo of the command line does not have. They are one
// write, so that what top shows at the same time does not come between them.
const modes = `; echo done-$?; m=$(stty -a | tr '; ' '\n\n' | grep -x -e icanon -e echo | tr '\n' '-'); echo "${m}mo""des"` + "\n"

// unchanged waits until the shell has told so.
func (tty *terminal) unchanged(times int) {
	tty.t.Helper()
	zktest.Eventually(tty.t, soon, func() bool { return strings.Count(tty.screen.String(), "-modes") == times }, "the shell tells the modes")
	require.Equal(tty.t, times, strings.Count(tty.screen.String(), "icanon-echo-modes"), "the modes are what they were")
}

// handsOver waits until the terminal does not collect lines any more.
func (tty *terminal) handsOver(t *testing.T) {
	t.Helper()
	raw, err := tty.keys.SyscallConn()
	require.NoError(t, err)
	zktest.Eventually(t, soon, func() (so bool) {
		require.NoError(t, raw.Control(func(fd uintptr) {
			modes, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
			so = err == nil && modes.Lflag&(unix.ICANON|unix.ECHO) == 0
		}))
		return so
	}, "the terminal hands keys over")
}

// isTakenAgain has a program that is in the background brought to the
// foreground, and ends it by q.
func (tty *terminal) isTakenAgain() {
	tty.t.Helper()
	tty.press("true" + modes)
	tty.unchanged(1)
	tty.press("fg" + modes)
	tty.handsOver(tty.t)
	tty.press("q")
	tty.unchanged(2)
}

func TestTheKeyQEndsWhatIsShownAgainAndAgain(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for verb, keys := range map[string]string{"top " + w.Path("l"): "q", "ls --watch " + w.Path(""): "x\nQ", "--json top " + w.Path("l"): "..q"} {
		tty := onTerminal(t, w, "sh", "-i")
		tty.press("$D " + verb + modes)
		tty.handsOver(t)
		tty.press(keys)
		tty.sees("done-0")
		tty.unchanged(1)
	}
}

func TestTheModesOfTheTerminalAreRestoredHoweverTopEnds(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for name, end := range map[string]struct {
		key    string
		signal syscall.Signal
		status string
	}{
		"the interrupt key": {interrupt, 0, "0"},
		"the quit key":      {"\x1c", 0, "2"}, // the runtime's, with what all goroutines do
		"TERM":              {"", syscall.SIGTERM, "0"},
		"HUP":               {"", syscall.SIGHUP, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			tty := onTerminal(t, w, "sh", "-i")
			tty.press(`$D top ` + w.Path("l") + modes)
			tty.handsOver(t)
			tty.press(end.key)
			if end.signal != 0 {
				require.NoError(t, unix.Kill(-foreground(t, tty), end.signal))
			}
			tty.sees("done-" + end.status)
			tty.unchanged(1)
		})
	}
}

// foreground is the process group that has the terminal.
func foreground(t *testing.T, tty *terminal) (group int) {
	t.Helper()
	raw, err := tty.keys.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { group, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }))
	require.Positive(t, group)
	return group
}

func TestTheStopKeyGivesTheTerminalBackAsItWasAndForegroundTakesItAgain(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press("$D top " + w.Path("l") + "\n")
	tty.handsOver(t)
	tty.press(stop)
	tty.sees("Stopped")
	tty.isTakenAgain()
}

func TestInTheBackgroundTopLeavesTheTerminalAlone(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press("$D top --every 20ms " + w.Path("l") + " &\n")
	tty.sees("there is nothing")
	tty.press("echo mine-$((1+1))\n")
	tty.sees("mine-2")
	tty.isTakenAgain()
}

func TestWherePagersReadTheKeysTopDoesNot(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-c", os.Args[0]+" top "+w.Path("l")+" | cat")
	tty.sees("there is nothing")
	tty.press("typed")
	tty.sees("typed") // the terminal echoes it
	tty.press(interrupt)
	_ = tty.cmd.Wait()
}
