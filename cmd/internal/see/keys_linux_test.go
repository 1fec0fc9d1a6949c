package see

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheKeyQEndsWhatIsShownAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for verb, keys := range map[string]string{"top " + w.Path("l"): "q", "ls --watch " + w.Path(""): "x\nQ", "--json top " + w.Path("l"): "..q"} {
		tty := cmdtest.OnTerminal(t, w, "sh", "-i")
		tty.Press("$D " + verb + cmdtest.Modes)
		tty.HandsOver(t)
		tty.Press(keys)
		tty.Sees("done-0")
		tty.Unchanged(1)
	}
}

func TestTheModesOfTheTerminalAreRestoredHoweverTopEnds(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
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
			tty := cmdtest.OnTerminal(t, w, "sh", "-i")
			tty.Press(`$D top ` + w.Path("l") + cmdtest.Modes)
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
	raw, err := tty.Keys.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { group, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }))
	require.Positive(t, group)
	return group
}

func TestTheStopKeyGivesTheTerminalBackAsItWasAndForegroundTakesItAgain(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	tty := cmdtest.OnTerminal(t, w, "sh", "-i")
	tty.Press("$D top " + w.Path("l") + "\n")
	tty.HandsOver(t)
	tty.Press(cmdtest.Stop)
	tty.Sees("Stopped")
	tty.IsTakenAgain()
}

func TestInTheBackgroundTopLeavesTheTerminalAlone(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	tty := cmdtest.OnTerminal(t, w, "sh", "-i")
	tty.Press("$D top --every 20ms " + w.Path("l") + " &\n")
	tty.Sees("there is nothing")
	tty.Press("echo mine-$((1+1))\n")
	tty.Sees("mine-2")
	tty.IsTakenAgain()
}

func TestWherePagersReadTheKeysTopDoesNot(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	tty := cmdtest.OnTerminal(t, w, "sh", "-c", cmdtest.Coorddemo(t)+" top "+w.Path("l")+" | cat")
	tty.Sees("there is nothing")
	tty.Press("typed")
	tty.Sees("typed") // the terminal echoes it
	tty.Press(cmdtest.Interrupt)
	_ = tty.Cmd.Wait()
}
