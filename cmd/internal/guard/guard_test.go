//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The test binary is three programs: the tests, the guard, and an owner that
// may be frozen and killed.
const (
	roleVariable = "GUARD_TEST_ROLE"
	ownerRole    = "owner"
	shellRole    = "shell"   // like a shell with job control: its child has a group of its own
	changedRole  = "changed" // like su, when the file is set-user-ID
)

// soon bounds waits for what should happen immediately; patience for a busy
// machine, not a promise.
const soon = 20 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case ownerRole:
		ownerMain()
	case shellRole:
		job := exec.Command("sleep", "1000")
		job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := job.Start(); err != nil {
			panic(err)
		}
		fmt.Println(job.Process.Pid)
		_ = job.Wait()
	case changedRole:
		if err := syscall.Setreuid(0, 0); err != nil {
			panic(err)
		}
		fmt.Println(os.Getpid())
		_, _ = unix.Poll(nil, -1)
	default:
		zktest.HeedSignals()
		_ = flag.Set("test.parallel", "8") // tests wait more than they compute
		goleak.VerifyTestMain(m)
	}
}

func guardCommand(out *os.File) *exec.Cmd {
	cmd := exec.Command(os.Args[0], Verb)
	cmd.Stdout = out // and not stderr: shells report signals there
	return cmd
}

// ownerMain runs a script under guard and then does nothing more; it prints the
// command's process id.
func ownerMain() {
	lasts, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	deadline := Now().Add(lasts)
	p, err := Start(Options{
		Guard: guardCommand(os.Stdout), Argv: []string{"/bin/sh", "-c", os.Args[2]},
		Deadline: deadline, KillAfter: lasts / 6,
	})
	if err != nil {
		panic(err)
	}
	for e := range p.Events() {
		fmt.Println(e.Kind, e.PID, e.Left, int64(e.At.Sub(deadline)))
	}
}

// run is a script under guard.
type run struct {
	*Process
	t     *testing.T
	lines chan string
}

func guarded(t *testing.T, lasts, killAfter time.Duration, script string) *run {
	return guardedCommand(t, lasts, killAfter, "/bin/sh", "-c", script)
}

func guardedCommand(t *testing.T, lasts, killAfter time.Duration, argv ...string) *run {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p, err := Start(Options{Guard: guardCommand(write), Argv: argv, Deadline: Now().Add(lasts), KillAfter: killAfter})
	require.NoError(t, err)
	require.NoError(t, write.Close())
	r := &run{Process: p, t: t, lines: make(chan string, 100)}
	go func() {
		defer close(r.lines)
		defer read.Close()
		for lines := bufio.NewScanner(read); lines.Scan(); {
			r.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		p.Abandon()
		for range p.Events() {
		}
		for range r.lines {
		}
	})
	return r
}

func (r *run) event(kind Kind) Event {
	r.t.Helper()
	select {
	case e, ok := <-r.Events():
		require.True(r.t, ok, "no more events while waiting for %s", kind)
		require.Equal(r.t, kind, e.Kind, "%+v", e)
		return e
	case <-time.After(soon):
		require.FailNow(r.t, "no event", "waiting for %s", kind)
	}
	panic("unreachable")
}

func (r *run) line() string {
	r.t.Helper()
	line, ok := r.next()
	require.True(r.t, ok, "the command's output has ended")
	return line
}

// next is the next line, if there is one before the end.
func (r *run) next() (string, bool) {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		return line, ok
	case <-time.After(soon):
		require.FailNow(r.t, "the command prints nothing")
	}
	panic("unreachable")
}

// withTime gives f ever more time until it reports that this was enough: what
// other processes do in a given time depends on how busy the machine is.
func withTime(t *testing.T, f func(enough time.Duration) bool) {
	t.Helper()
	for enough := 300 * time.Millisecond; !f(enough); enough *= 4 {
		require.Less(t, enough, soon, "no time is enough")
	}
}

// requireGone waits until no living process has that id; a zombie counts as
// gone.
func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, soon, time.Millisecond, "process %d lives on", pid)
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return unix.Kill(pid, 0) == nil && !fileExists("/proc/self/stat")
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return fields[0][0] != 'Z' && fields[0][0] != 'X'
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	require.NoError(t, err)
	return n
}

func TestTheStatusIsTheCommandsOwn(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		r := guarded(t, time.Minute, 0, script)
		r.event(Started)
		e := r.event(Exited)
		require.Equal(t, want, e.ExitCode(), script)
		require.Equal(t, ByItself, e.Cause, script)
	}
}

func TestACommandThatCannotBeRunIsReportedAsByAShell(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("echo never\n"), 0o600))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, want := range map[string]int{
		"/no/such/file": 127, "no-such-command-anywhere": 127, dir: 126, plain: 126, "plain": 126,
	} {
		e := guardedCommand(t, time.Minute, 0, name).event(Failed)
		require.Equal(t, want, e.Code, name)
		require.Contains(t, string(e.Message), name)
	}
}

func TestAScriptWithoutInterpreterLineIsRunByTheShell(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	zktest.WriteProgram(t, script, []byte("echo \"$1\"; exit 3\n"), 0o700)
	r := guardedCommand(t, time.Minute, 0, script, "argument")
	r.event(Started)
	require.Equal(t, "argument", r.line())
	require.Equal(t, 3, r.event(Exited).ExitCode())
}

func TestACommandLineMayBeLongerThanAPipe(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 120_000)
	r := guardedCommand(t, time.Minute, 0, "sh", "-c", `echo ${#1} ${#2}`, "sh", long, long)
	r.event(Started)
	require.Equal(t, "120000 120000", r.line())
	require.Equal(t, 0, r.event(Exited).ExitCode())
}

// deaf is a command that reports TERM and does not obey it.
const deaf = `trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done`

func TestTermComesBeforeTheDeadlineAndKillAtIt(t *testing.T) {
	t.Parallel()
	withTime(t, func(killAfter time.Duration) bool {
		r := guarded(t, time.Hour, killAfter, deaf)
		r.event(Started)
		require.Equal(t, "ready", r.line())
		deadline := Now().Add(2 * killAfter)
		r.Extend(deadline)
		_, heard := r.next()
		require.GreaterOrEqual(t, Now(), deadline.Add(-killAfter), "TERM came too early")
		e := r.event(Exited)
		require.Equal(t, 137, e.ExitCode())
		require.Equal(t, ByDeadline, e.Cause)
		require.GreaterOrEqual(t, e.At, deadline, "KILL came too early")
		return heard && e.At.Sub(deadline) < killAfter
	})
}

func TestAnExtendedDeadlineLetsTheCommandFinish(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 100*time.Millisecond, `echo ready; sleep 1.2; exit 4`)
	r.event(Started)
	require.Equal(t, "ready", r.line())
	r.Extend(Now().Add(time.Second))
	r.Extend(Now().Add(time.Hour))
	e := r.event(Exited)
	require.Equal(t, 4, e.ExitCode())
	require.Equal(t, ByItself, e.Cause)
}

func TestStopIsTermThenKill(t *testing.T) {
	t.Parallel()
	withTime(t, func(killAfter time.Duration) bool {
		r := guarded(t, time.Hour, killAfter, deaf)
		r.event(Started)
		require.Equal(t, "ready", r.line())
		r.Stop()
		_, heard := r.next()
		e := r.event(Exited)
		require.Equal(t, 137, e.ExitCode())
		require.Equal(t, ByStop, e.Cause)
		return heard
	})
}

func TestAStoppedCommandStillHearsTerm(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 20*time.Second, `trap 'echo term; exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done`)
	r.event(Started)
	require.Equal(t, syscall.SIGSTOP, r.event(Stopped).Signal)
	r.Stop()
	require.Equal(t, 5, r.event(Exited).ExitCode())
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `trap 'wait; echo parent; exit 9' USR1; sh -c 'trap "echo child; exit" USR1; echo ready; while :; do sleep 0.01; done' & wait`)
	r.event(Started)
	require.Equal(t, "ready", r.line())
	r.Signal(syscall.SIGUSR1)
	require.Equal(t, "child", r.line())
	require.Equal(t, "parent", r.line())
	require.Equal(t, 9, r.event(Exited).ExitCode())
}

func TestKillTakesTheWholeGroup(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `sleep 1000 & echo $!; wait`)
	r.event(Started)
	child := number(t, r.line())
	r.Kill()
	e := r.event(Exited)
	require.Equal(t, ByKill, e.Cause)
	requireGone(t, child)
}

func TestOnLinuxKillAlsoTakesTheJobsOfAShellWithJobControl(t *testing.T) {
	t.Parallel()
	if !fileExists("/proc/self/stat") {
		t.Skip("left out: needs Linux's process table")
	}
	r := guardedCommand(t, time.Hour, 0, "env", roleVariable+"="+shellRole, os.Args[0])
	pid := r.event(Started).PID
	job := number(t, r.line())
	group, err := unix.Getpgid(job)
	require.NoError(t, err)
	require.NotEqual(t, pid, group, "the job has no group of its own, and this test proves nothing")
	r.Kill()
	r.event(Exited)
	requireGone(t, job)
}

func TestBackgroundProcessesOutliveACommandThatEndsByItself(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `sleep 1000 >/dev/null 2>&1 & echo $!`)
	r.event(Started)
	child := number(t, r.line())
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	require.Equal(t, 0, r.event(Exited).ExitCode())
	require.True(t, alive(child))
}

func TestWhatAStoppedCommandLeavesBehindHasTheSameTime(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 20*time.Second, `sh -c 'trap "sleep 0.2; echo cleaned; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`)
	r.event(Started)
	require.Equal(t, "ready", r.line())
	r.Stop()
	require.Equal(t, 143, r.event(Exited).ExitCode())
	require.Equal(t, "cleaned", r.line())
}

// Not in parallel: the processes of other tests would get the descriptor, too.
func TestTheCommandGetsTheThreeStandardDescriptorsOnly(t *testing.T) {
	if !fileExists("/proc/self/fd") {
		t.Skip("left out: needs Linux's /proc")
	}
	left, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer left.Close()
	_, err = unix.FcntlInt(left.Fd(), unix.F_SETFD, 0) // as left open by the parent of the owner
	require.NoError(t, err)
	r := guardedCommand(t, time.Hour, 0, "ls", "/proc/self/fd")
	r.event(Started)
	r.event(Exited)
	var open []string
	for line := range r.lines {
		open = append(open, line)
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, open, "3 is the directory that ls reads")
}

func TestTheCommandIgnoresNoSignals(t *testing.T) {
	t.Parallel()
	if !fileExists("/proc/self/status") {
		t.Skip("left out: needs Linux's /proc")
	}
	r := guardedCommand(t, time.Hour, 0, "cat", "/proc/self/status")
	r.event(Started)
	r.event(Exited)
	for line := range r.lines {
		if rest, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			require.NoError(t, err)
			mask &= 1<<31 - 1 // real-time signals are the caller's affair
			require.Zero(t, mask, "ignored signals: %x", mask)
			return
		}
	}
	require.Fail(t, "no SigIgn line")
}

func TestSignalsToTheOwnersGroupDoNotReachTheGuard(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `echo $PPID; while :; do sleep 0.01; done`)
	r.event(Started)
	guard := number(t, r.line())
	group, err := unix.Getpgid(guard)
	require.NoError(t, err)
	require.NotEqual(t, unix.Getpgrp(), group)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP} {
		require.NoError(t, unix.Kill(guard, s))
	}
	r.Stop()
	require.Equal(t, ByStop, r.event(Exited).Cause)
}

func TestTheEndOfTheGuardIsTheEndOfTheCommand(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `sleep 1000 & echo $PPID $!; wait`)
	pid := r.event(Started).PID
	ids := strings.Fields(r.line())
	require.NoError(t, unix.Kill(number(t, ids[0]), unix.SIGKILL))
	r.event(Gone)
	requireGone(t, pid)
	requireGone(t, number(t, ids[1]))
}

func TestAbandonEndsACommandWhoseGuardIsFrozen(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `echo $PPID; exec sleep 1000`)
	pid := r.event(Started).PID
	require.NoError(t, unix.Kill(number(t, r.line()), unix.SIGSTOP))
	r.Kill()
	r.Abandon()
	r.event(Gone)
	requireGone(t, pid)
}

// owner starts an owner process and returns it with the command's process id,
// or 0 if it was too late to run the command.
func owner(t *testing.T, lasts time.Duration, script string) (*exec.Cmd, *output, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], lasts.String(), script)
	cmd.Env = append(os.Environ(), roleVariable+"="+ownerRole)
	lines, pid := started(t, cmd)
	return cmd, lines, pid
}

// output is what an owner and its command print, in one line after the other.
type output struct {
	*bufio.Scanner
	from  *os.File
	early []string // came before the owner's first line
}

func (o *output) Text() string {
	if len(o.early) > 0 {
		return o.early[0]
	}
	return o.Scanner.Text()
}

func (o *output) Scan() bool {
	if len(o.early) > 1 {
		o.early = o.early[1:]
		return true
	}
	o.early = nil
	return o.next()
}

// next reports whether there is another line soon.
func (o *output) next() bool {
	return o.from.SetReadDeadline(time.Now().Add(soon)) == nil && o.Scanner.Scan()
}

func started(t *testing.T, cmd *exec.Cmd) (*output, int) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := &output{Scanner: bufio.NewScanner(out), from: out.(*os.File), early: []string{""}}
	for {
		require.True(t, lines.next())
		var what Kind
		var pid int
		_, _ = fmt.Sscan(lines.Scanner.Text(), &what, &pid)
		if what == Started || what == Exited {
			return lines, pid
		}
		lines.early = append(lines.early, lines.Scanner.Text())
	}
}

func TestTheEndOfTheOwnerIsTheEndOfTheCommand(t *testing.T) {
	t.Parallel()
	cmd, _, pid := owner(t, time.Hour, `trap '' TERM; while :; do sleep 0.01; done`)
	require.True(t, alive(pid))
	require.NoError(t, cmd.Process.Kill())
	requireGone(t, pid)
}

func TestAFrozenOwnersCommandEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	withTime(t, func(enough time.Duration) bool {
		lasts, begin := 5*enough, Now()
		cmd, lines, pid := owner(t, lasts, `trap '' TERM; while :; do sleep 0.01; done`)
		if pid == 0 {
			return false
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		requireGone(t, pid)
		require.GreaterOrEqual(t, Now().Sub(begin), lasts)
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "exited", "the owner learns of it when it wakes")
		return true
	})
}

func TestTheGuardRefusesToRunWithoutOrders(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], Verb).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "for the program itself")
}

func TestACommandIsNotStartedWhenItIsTooLate(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Second, 2*time.Second, `echo never`)
	require.Equal(t, ByDeadline, r.event(Exited).Cause)
	_, open := <-r.lines
	require.False(t, open)
}

func TestACommandThatWasToldToEndIsInterruptedWhateverComesAfterwards(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, time.Minute,
		`trap 'echo term' TERM; trap 'echo tidied; exit 0' USR1; echo ready; while :; do sleep 0.01; done`)
	r.event(Started)
	require.Equal(t, "ready", r.line())
	r.Extend(Now().Add(time.Minute))
	require.Equal(t, "term", r.line())
	r.Extend(Now().Add(time.Hour)) // the servers answer again
	r.Signal(syscall.SIGUSR1)
	require.Equal(t, "tidied", r.line())
	e := r.event(Exited)
	require.Equal(t, 0, e.ExitCode())
	require.Equal(t, ByDeadline, e.Cause)
}

func TestACommandThatDoesNotHeedTermIsKilledThoughTheDeadlineMoves(t *testing.T) {
	t.Parallel()
	withTime(t, func(killAfter time.Duration) bool {
		r := guarded(t, time.Hour, killAfter, deaf)
		r.event(Started)
		require.Equal(t, "ready", r.line())
		r.Extend(Now().Add(killAfter))
		_, heard := r.next()
		r.Extend(Now().Add(time.Hour))
		e := r.event(Exited)
		require.Equal(t, 137, e.ExitCode())
		require.Equal(t, ByDeadline, e.Cause)
		return heard
	})
}

func TestArgumentsAreBytes(t *testing.T) {
	t.Parallel()
	r := guardedCommand(t, time.Minute, 0, "sh", "-c", `printf %s "$1" | od -An -tx1`, "sh", "caf\xe9\xff\xc0\x80")
	r.event(Started)
	require.Equal(t, " 63 61 66 e9 ff c0 80", r.line())
	require.Equal(t, 0, r.event(Exited).ExitCode())
}

func TestTheNameOfACommandIsBytes(t *testing.T) {
	t.Parallel()
	require.Contains(t, string(guardedCommand(t, time.Minute, 0, "/no/such/caf\xe9").event(Failed).Message), "/no/such/caf\xe9")
}
