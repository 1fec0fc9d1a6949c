package cli

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// terminal is a pseudo-terminal with a session on it, and the screen a person
// would see.
type terminal struct {
	t      *testing.T
	keys   *os.File
	screen buffer
	cmd    *exec.Cmd
}

// The keys that send signals.
const (
	interrupt = "\x03"
	stop      = "\x1a"
)

// onTerminal runs a command as the leader of a session with a terminal of its
// own.
func onTerminal(t *testing.T, w *zktest.World, name string, args ...string) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("left out: no pseudo-terminals here:", err)
	}
	// Not by keys.Fd(), which would make reads block for ever, even if the file
	// is closed.
	raw, err := keys.SyscallConn()
	require.NoError(t, err)
	var number int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		if number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed == nil {
			failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	}))
	require.NoError(t, failed)
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	tty := &terminal{t: t, keys: keys, cmd: exec.Command(name, args...)}
	tty.cmd.Env = append(environment(), "ZK_SERVERS="+w.ConnectString(), "D="+os.Args[0], "T=--session-timeout=4s", "PS1=$ ", "ENV=")
	tty.cmd.Stdin, tty.cmd.Stdout, tty.cmd.Stderr = device, device, device
	tty.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, tty.cmd.Start())
	require.NoError(t, device.Close())
	var reader sync.WaitGroup
	reader.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			if err != nil { // no process has the terminal open any more
				return
			}
			_, _ = tty.screen.Write(b[:n])
		}
	})
	t.Cleanup(func() {
		killSession(tty.cmd.Process.Pid)
		_ = tty.cmd.Wait()
		_ = keys.Close()
		reader.Wait()
		if t.Failed() {
			t.Logf("the screen:\n%s", tty.screen.String())
		}
	})
	return tty
}

// killSession kills every process of a session.
func killSession(session int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if sid, err := unix.Getsid(pid); err == nil && sid == session {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

func (tty *terminal) press(keys string) {
	tty.t.Helper()
	_, err := tty.keys.WriteString(keys)
	require.NoError(tty.t, err)
}

// sees waits until the text is on the screen.
func (tty *terminal) sees(text string) {
	tty.t.Helper()
	zktest.Eventually(tty.t, soon, func() bool { return strings.Contains(tty.screen.String(), text) }, "the screen shows %q", text)
}

// A shell's prompts and the echo of the keys are on the screen too, so commands
// print what their own text does not contain: done-0 for done-$?. Commands to
// be stopped by the key start no others at that time: while a shell's new child
// is stopped before it runs its program, the kernel does not stop the shell.

func TestTheInterruptKeyReachesTheCommand(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'trap "exit 9" INT; echo rea""dy; while :; do sleep 0.02; done'; echo done-$?` + "\n")
	tty.sees("ready")
	tty.press(interrupt)
	tty.sees("done-9")
}

func TestAnEndOfInputAtAQuestionEndsItsLine(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	holder := on(t, w, sh(w.Path("l"), untilEOF)...)
	holder.line()
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T break ` + w.Path("l") + `; echo done-$?` + "\n")
	tty.sees("[y/N] ")
	tty.press("\x04")
	tty.sees("[y/N] \r\ncoorddemo: nothing was broken")
	tty.sees("done-1")
	require.NoError(t, holder.in.Close())
	require.Equal(t, 5, holder.exit())
}

func TestTheCommandReadsFromTheTerminalAndTheShellGetsItBack(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'echo rea""dy; read x; echo got-$x'; echo done-$?` + "\n")
	tty.sees("ready")
	tty.press("words\n")
	tty.sees("got-words")
	tty.sees("done-0")
	tty.press("echo still-$((1+1))\n")
	tty.sees("still-2")
}

func TestTheStopKeyStopsTheCommandAndForegroundContinuesIt(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'echo rea""dy; read x; echo got-$x'; echo done-$?` + "\n")
	tty.sees("ready")
	tty.press(stop)
	tty.sees("unless continued")
	tty.press("echo back-$((1+1))\n")
	tty.sees("back-2")
	tty.press("fg\n")
	tty.press("words\n")
	tty.sees("got-words")
	// What the shell says about the job's end differs from shell to shell; that
	// it has the terminal again does not.
	tty.press("echo still-$((1+1))\n")
	tty.sees("still-2")
	awaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestAStoppedLockThatIsTerminatedEndsItsCommandInOrder(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'trap "echo term""inated; exit 9" TERM; echo rea""dy; while :; do read x; done'` + "\n")
	tty.sees("ready")
	tty.press(stop)
	tty.sees("unless continued")
	tty.press("kill %1; fg\n")
	zktest.Eventually(t, soon, func() bool {
		// The shell's read, continued and signalled in the same instant, goes
		// on before the trap is looked at.
		tty.press("\n")
		return strings.Contains(tty.screen.String(), "terminated")
	}, "the command's trap runs")
	awaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheModesOfTheTerminalAreRestoredWhenTheCommandWasMadeToEnd(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'stty raw -echo; echo rea""dy; exec sleep 1000'; stty -a | tr -d "\n" | grep -c " -ic""anon"; echo done-$?` + "\n")
	tty.sees("ready")
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").exit())
	tty.sees("done-1") // of grep: the mode is not set
}

func TestWhatNodesHoldIsQuotedOnATerminal(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	leader := on(t, w, "elect", "--data", "x\x1b[2J\nnobody leads", w.Path("e"), "--", "sh", "-c", "echo leads; cat")
	leader.line()
	tty := onTerminal(t, w, "sh", "-i")
	tty.press("$D elect --who " + w.Path("e") + "; echo done-$?\n")
	tty.sees(`"x\x1b[2J\nnobody leads"`)
	tty.sees("done-0")
	require.NoError(t, leader.in.Close())
	require.Equal(t, 0, leader.exit())
}

func TestTheStopKeyStopsAWaitAlsoForTheSecondTerm(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	other := on(t, w, "elect", w.Path("e"), "--", "sh", "-c", "echo leads; cat")
	other.line()
	tty.press(`$D $T elect --again ` + w.Path("e") + ` -- sh -c 'echo pid-$PPID; exec sleep 1000'` + "\n")
	awaitContenders(t, w.Admin(), w.Path("e"), 2)
	tty.press(stop)
	tty.press("echo first-$((1+1)); fg\n")
	tty.sees("first-2")
	require.NoError(t, other.in.Close())
	zktest.Eventually(t, soon, func() bool { return pidOn(tty) != 0 }, "it leads")
	second := on(t, w, "elect", w.Path("e"), "--", "sh", "-c", "echo leads; cat")
	awaitContenders(t, w.Admin(), w.Path("e"), 2)
	require.NoError(t, unix.Kill(pidOn(tty), unix.SIGKILL)) // the guard
	tty.sees("stands for election")
	second.line()
	awaitContenders(t, w.Admin(), w.Path("e"), 2)
	tty.press(stop)
	tty.press("echo second-$((1+1)); fg\n")
	tty.sees("second-2")
	require.NoError(t, second.in.Close())
	zktest.Eventually(t, soon, func() bool { return len(printedPID.FindAllString(tty.screen.String(), -1)) == 2 }, "it leads again")
	tty.press(interrupt)
	awaitContenders(t, w.Admin(), w.Path("e"), 0)
}

// Nothing could continue it there.
func TestWithoutAShellAboveTheStopKeyDoesNotStop(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, os.Args[0], "--session-timeout", "4s", "lock", w.Path("l"), "--", "sh", "-c", "echo ready; read x; echo got-$x")
	tty.sees("ready")
	tty.press(stop)
	tty.sees("unless continued")
	tty.press("words\n")
	tty.sees("got-words")
	require.NoError(t, tty.cmd.Wait())
}

func TestALockThatStaysStoppedIsLost(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D --session-timeout 2s lock ` + w.Path("l") + ` -- sh -c 'echo pid-$$; exec cat'` + "\n")
	zktest.Eventually(t, soon, func() bool { return pidOn(tty) != 0 }, "the command tells its process id")
	pid := pidOn(tty)
	tty.press(stop)
	tty.sees("unless continued")
	requireGone(t, pid)
	tty.press("fg; echo done-$?\n")
	tty.sees("lost " + w.Path("l"))
	tty.sees("done-76")
}

var printedPID = regexp.MustCompile(`pid-(\d+)`)

func pidOn(tty *terminal) (pid int) {
	if found := printedPID.FindStringSubmatch(tty.screen.String()); found != nil {
		pid, _ = strconv.Atoi(found[1])
	}
	return pid
}

func TestInTheBackgroundTheCommandDoesNotTakeTheTerminal(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'echo rea""dy; sleep 0.1; echo fin""ished' &` + "\n")
	tty.sees("ready")
	tty.press("echo mine-$((1+1))\n")
	tty.sees("mine-2")
	tty.sees("finished")
	tty.press("wait; echo still-$((1+1))\n")
	tty.sees("still-2")
}

func TestALockBroughtToTheForegroundHandsTheTerminalOn(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, "sh", "-i")
	tty.press(`$D $T lock ` + w.Path("l") + ` -- sh -c 'read x; echo got-$x' &` + "\n")
	tty.sees("goes on holding") // it read from the terminal in the background, and was stopped for that
	tty.press("fg\n")
	tty.press("words\n")
	tty.sees("got-words")
	tty.press("echo still-$((1+1))\n")
	tty.sees("still-2")
}

func TestBreakAsksThePersonAtTheTerminal(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), busy)...)
	p.line()
	tty := onTerminal(t, w, "sh", "-i")
	tty.press("$D break " + w.Path("l") + "; echo done-$?\n")
	tty.sees("[y/N]")
	tty.sees(`"sh `)
	tty.press("\n")
	tty.sees("nothing was broken")
	tty.sees("done-1")
	tty.press("$D break " + w.Path("l") + "; echo again-$?\n")
	zktest.Eventually(t, soon, func() bool { return strings.Count(tty.screen.String(), "[y/N]") == 2 }, "break asks again")
	tty.press("y\n")
	tty.sees("again-0")
	require.Equal(t, exitLost, p.exit())
}

func TestAPersonThatWaitsSeesTheHolder(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), untilEOF)...)
	p.line()
	tty := onTerminal(t, w, os.Args[0], "--session-timeout", "2s", "lock", w.Path("l"), "--", "echo", "my turn")
	tty.sees("waiting for " + w.Path("l") + ", held by")
	require.NoError(t, p.in.Close())
	tty.sees("my turn")
	require.NoError(t, tty.cmd.Wait())
}

func TestADemoShowsItsProgressOnATerminal(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tty := onTerminal(t, w, os.Args[0], "demo", "stock", "--unsafe", "--workers", "2", "--stock", "100", "--kill", "0")
	tty.sees("of 100")
	tty.sees(`"demo":"stock"`)
}
