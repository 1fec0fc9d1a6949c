package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// A shell's prompts and the echo of the keys are on the screen too, so commands
// print what their own text does not contain: done-0 for done-$?. Commands to
// be stopped by the key start no others at that time: while a shell's new child
// is stopped before it runs its program, the kernel does not stop the shell.

func TestTheInterruptKeyReachesTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w,
		`$D $T lock `+w.Path("l")+` -- sh -c 'trap "exit 9" INT; echo rea""dy; while :; do sleep 0.2; done'; echo done-$?`+
			"\n")
	tty.Sees("ready")
	tty.Answers(cmdtest.Interrupt, "done-9")
}

func TestAnEndOfInputAtAQuestionEndsItsLine(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	tty := cmdtest.OnShell(t, w, `$D $T break `+w.Path("l")+`; echo done-$?`+"\n")
	tty.Sees("[y/N] ")
	tty.Answers("\x04", "[y/N] \r\ncoorddemo: nothing was broken")
	tty.Sees("done-1")
	holder.LetGo(5)
}

func TestTheCommandReadsFromTheTerminalAlsoWhenItWasStoppedAndTheShellGetsItBack(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w,
		`$D $T lock `+w.Path("l")+` -- sh -c 'echo rea""dy; read x; echo got-$x; read x; echo got-$x'; echo done-$?`+"\n")
	tty.Sees("ready")
	tty.Answers("words\n", "got-words")
	tty.Answers(cmdtest.Stop, "unless continued")
	tty.Answers("echo back-$((1+1))\n", "back-2")
	tty.Press("fg\n")
	tty.Answers("more\n", "got-more")
	// What the shell says about the job's end differs from shell to shell; that
	// it has the terminal again does not.
	tty.Answers("echo still-$((1+1))\n", "still-2")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestAStoppedLockThatIsTerminatedEndsItsCommandInOrder(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w,
		`$D $T lock `+w.Path("l")+` -- sh -c 'trap "echo term""inated; exit 9" TERM; echo rea""dy; while :; do read x; done'`+
			"\n")
	tty.Sees("ready")
	tty.Answers(cmdtest.Stop, "unless continued")
	tty.Press("kill %1; fg\n")
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		// The shell's read, continued and signalled in the same instant, goes
		// on before the trap is looked at.
		tty.Press("\n")
		return strings.Contains(tty.Screen.String(), "terminated")
	}, "the command's trap runs")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheModesOfTheTerminalAreRestoredWhenTheCommandWasMadeToEnd(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w,
		`$D $T lock `+w.Path("l")+
			` -- sh -c 'stty raw -echo; echo rea""dy; exec sleep 1000'; stty -a | tr -d "\n" | grep -c " -ic""anon"; echo done-$?`+"\n")
	tty.Sees("ready")
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").Exit())
	tty.Sees("done-1") // of grep: the mode is not set
}

func TestWhatNodesHoldIsQuotedOnATerminal(t *testing.T) {
	w := cmdtest.World(t)
	leader := cmdtest.On(t, w, "elect", "--data", "x\x1b[2J\nnobody leads", w.Path("e"), "--", "sh", "-c",
		"echo leads; cat").Begun()
	tty := cmdtest.OnShell(t, w, "$D elect --who "+w.Path("e")+"; echo done-$?\n")
	tty.Sees(`"x\x1b[2J\nnobody leads"`)
	tty.Sees("done-0")
	leader.LetGo(0)
}

func TestTheStopKeyStopsAWaitAlsoForTheSecondTerm(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnTerminal(t, w, "sh", "-i")
	other := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", "echo leads; cat").Begun()
	tty.Press(`$D $T elect --again ` + w.Path("e") + ` -- sh -c 'echo pid-$PPID; exec sleep 1000'` + "\n")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("e"), 2)
	tty.Press(cmdtest.Stop)
	tty.Answers("echo first-$((1+1)); fg\n", "first-2")
	require.NoError(t, other.In.Close())
	zktest.Eventually(t, cmdtest.Soon, func() bool { return pidOn(tty) != 0 }, "it leads")
	second := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", "echo leads; cat").InLine(w, w.Path("e"), 2)
	require.NoError(t, unix.Kill(pidOn(tty), unix.SIGKILL)) // the guard
	tty.Sees("stands for election")
	second.Line()
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("e"), 2)
	tty.Press(cmdtest.Stop)
	tty.Answers("echo second-$((1+1)); fg\n", "second-2")
	require.NoError(t, second.In.Close())
	zktest.Eventually(t, cmdtest.Soon, func() bool { return len(printedPID.FindAllString(tty.Screen.String(), -1)) == 2 },
		"it leads again")
	tty.Press(cmdtest.Interrupt)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("e"), 0)
}

// Nothing could continue it there.
func TestWithoutAShellAboveTheStopKeyDoesNotStop(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnTerminal(t, w, cmdtest.Coorddemo(t), "--session-timeout", "20s", "lock", w.Path("l"), "--", "sh",
		"-c", "echo ready; read x; echo got-$x")
	tty.Sees("ready")
	tty.Answers(cmdtest.Stop, "unless continued")
	tty.Answers("words\n", "got-words")
	require.NoError(t, tty.Cmd.Wait())
}

func TestALockThatStaysStoppedIsLost(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w, `$D --session-timeout 6s lock `+w.Path("l")+` -- sh -c 'echo pid-$$; exec cat'`+"\n")
	zktest.Eventually(t, cmdtest.Soon, func() bool { return pidOn(tty) != 0 }, "the command tells its process id")
	pid := pidOn(tty)
	tty.Answers(cmdtest.Stop, "unless continued")
	cmdtest.RequireGone(t, pid)
	tty.Answers("fg; echo done-$?\n", "lost "+w.Path("l"))
	tty.Sees("done-76")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0) // at the end of the session, which a last ping may have put off
}

var printedPID = regexp.MustCompile(`pid-(\d+)`)

func pidOn(tty *cmdtest.Terminal) (pid int) {
	if found := printedPID.FindStringSubmatch(tty.Screen.String()); found != nil {
		pid, _ = strconv.Atoi(found[1])
	}
	return pid
}

func TestInTheBackgroundTheCommandDoesNotTakeTheTerminal(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w, `$D $T lock `+w.Path("l")+` -- sh -c 'echo rea""dy; sleep 0.1; echo fin""ished' &`+"\n")
	tty.Sees("ready")
	tty.Answers("echo mine-$((1+1))\n", "mine-2")
	tty.Sees("finished")
	tty.Answers("wait; echo still-$((1+1))\n", "still-2")
}

func TestALockBroughtToTheForegroundHandsTheTerminalOn(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnShell(t, w, `$D $T lock `+w.Path("l")+` -- sh -c 'read x; echo got-$x' &`+"\n")
	tty.Sees("goes on holding") // it read from the terminal in the background, and was stopped for that
	tty.Press("fg\n")
	tty.Answers("words\n", "got-words")
	tty.Answers("echo still-$((1+1))\n", "still-2")
}

func TestBreakAsksThePersonAtTheTerminal(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
	tty := cmdtest.OnShell(t, w, "$D break "+w.Path("l")+"; echo done-$?\n")
	tty.Sees("[y/N]")
	tty.Sees(`"sh `)
	tty.Answers("\n", "nothing was broken")
	tty.Sees("done-1")
	tty.Press("$D break " + w.Path("l") + "; echo again-$?\n")
	zktest.Eventually(t, cmdtest.Soon, func() bool { return strings.Count(tty.Screen.String(), "[y/N]") == 2 },
		"break asks again")
	tty.Answers("y\n", "again-0")
	require.Equal(t, term.ExitLost, p.Exit())
}

func TestADemoShowsItsProgressAndItsKillsOnATerminal(t *testing.T) {
	w := cmdtest.World(t)
	tty := cmdtest.OnTerminal(t, w, cmdtest.Coorddemo(t), "demo", "stock", "--workers", "2", "--stock", "100",
		"--kill", "1")
	tty.Sees("█✗░")
	tty.Sees(" of 100")
	tty.Sees(`"demo":"stock"`)
}

// ordinary has a program that runs as a user other than root, and one by which
// that user becomes root, as by su.
type ordinary struct{ program, su string }

func newOrdinary(t *testing.T) ordinary {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("left out: needs setpriv")
	}
	program, su := cmdtest.ForAllUsers(t, cmdtest.Coorddemo(t), setpriv)
	return ordinary{program, su}
}

// lock starts coorddemo as that user. The command finds su as $SU.
func (o ordinary) lock(t *testing.T, w *zktest.World, cmd ...string) *cmdtest.Process {
	t.Helper()
	p := exec.Command(o.program,
		append(
			append(cmdtest.Target(w), "--session-timeout", cmdtest.Short.String(), "--json", "lock", w.Path("l"),
				"--"), cmd...)...)
	p.Dir = filepath.Dir(o.program)
	p.Env = []string{"SU=" + o.su + " --reuid=0"}
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmdtest.StartAs(t, p)
}

func TestACommandThatChangesItsUserIsReportedAtOnceAndInJSON(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `exec $SU sh -c 'echo $$; exec cat'`)
	pid := p.Number()
	p.Tells("runs as another user")
	require.True(t, cmdtest.Alive(pid))
	p.LetGo(0)
	require.EqualValues(t, []any{float64(pid)}, cmdtest.Told(t, p.Stderr.String())[0]["unstoppable"])
}

func TestACommandOfAnotherUserIsReportedBeforeTheWait(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
	p := o.lock(t, w, o.su, "--reuid=0", "echo", "never")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
	require.Contains(t, p.Stderr.String(), "runs as another user")
	p.EndsBy(syscall.SIGTERM, 143)
	require.Empty(t, p.Output())
}

func TestWhatCannotBeStoppedKeepsTheLockUntilTheSessionEnds(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `$SU sh -c 'echo $$; exec sleep 1000' & wait`)
	pid := p.Number()
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l")).Exit())
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 1) // it was not released, for something is running still
	require.True(t, cmdtest.Alive(pid))
	require.EqualValues(t, []any{float64(pid)}, cmdtest.Told(t, p.Stderr.String())[0]["unstoppable"])
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestUnderNohupTheCommandIgnoresHangUps(t *testing.T) {
	w := cmdtest.World(t)
	args := append([]string{"-c", `trap '' HUP; exec "$0" "$@"`, cmdtest.Coorddemo(t)}, cmdtest.Target(w)...)
	p := cmdtest.StartAs(t, exec.Command("sh", append(args, "lock", w.Path("l"), "--", "cat", "/proc/self/status")...))
	ignored := mask(p.Output(), "SigIgn:") & (1<<31 - 1) // real-time signals are the caller's affair
	require.EqualValues(t, 1<<(syscall.SIGHUP-1), ignored)
}

func TestWhenAllThatGuardsIsKilledNothingIsReleased(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Mortal(t, w,
		append([]string{"--json"},
			cmdtest.Sh(w.Path("l"), `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; exec sleep 1000`)...)...)
	guard, reaper := p.Number(), p.Number()
	require.NoError(t, unix.Kill(reaper, unix.SIGSTOP))
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.NoError(t, unix.Kill(reaper, unix.SIGKILL))
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 1) // it was not released, for something may be running still
	require.Contains(t, p.Stderr.String(), "may be running still")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheSecondTermsCommandHasTheSignalsOfTheFirst(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "elect", "--again", w.Path("e"), "--", "sh", "-c",
		`grep SigIgn /proc/self/status; echo $PPID; exec sleep 1000`)
	for range 2 {
		require.Zero(t, mask(p.Line(), "SigIgn:")&(1<<31-1))
		require.NoError(t, unix.Kill(p.Number(), unix.SIGKILL))
	}
	require.Zero(t, mask(p.Line(), "SigIgn:")&(1<<31-1))
	p.Number()
	p.EndsBy(syscall.SIGTERM, 143)
}

func TestASignalEndsTheAttemptToConnect(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "1h", "lock", "/l", "--", "true")
	zktest.Eventually(t, cmdtest.Soon, func() bool { return handles(p.Pid(), syscall.SIGTERM) },
		"coorddemo listens to signals")
	p.EndsBy(syscall.SIGTERM, 128+15)
}

// handles reports whether a process has a handler for a signal.
func handles(pid int, s syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return mask(string(status), "SigCgt:")&(1<<(s-1)) != 0
}

func mask(status, name string) uint64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			m, _ := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return m
		}
	}
	return 0
}

// Its parent has left the session, and does not collect it.
func TestAZombieInTheCommandsGroupKeepsNoLock(t *testing.T) {
	w := cmdtest.World(t)
	const script = `perl -MPOSIX -e '$| = 1; exit if !fork; POSIX::setsid(); print "$$\n"; sleep 600' & wait; sleep 600`
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script)...)
	parent := p.Number()
	t.Cleanup(func() { _ = syscall.Kill(parent, syscall.SIGKILL) })
	require.Zero(t, cmdtest.On(t, w, "revoke", "--wait", "--timeout", "20s", w.Path("l")).Exit())
	require.Equal(t, 143, p.Exit())
}
