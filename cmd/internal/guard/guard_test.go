//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"bufio"
	"flag"
	"fmt"
	"io"
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

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
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

// goodbye is what the program writes as the verb Farewell.
const goodbye = "goodbye"

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
		if os.Args[1] == FarewellVerb {
			_, _ = io.Copy(os.Stdout, os.Stdin)
			return
		}
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

// ownerMain runs a script under guard and then does nothing more; it writes
// what happens to standard error, and the command has its standard output.
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
		fmt.Fprintln(os.Stderr, e.Kind, e.PID, e.Left, int64(e.At.Sub(deadline)))
	}
}

// run is a script under guard.
type run struct {
	*Process
	t     *testing.T
	pid   int // the command's
	lines chan string
}

// guarded runs a script, and returns when it has been started.
func guarded(t *testing.T, lasts, killAfter time.Duration, script string) *run {
	t.Helper()
	return guardedCommand(t, lasts, killAfter, "/bin/sh", "-c", script)
}

func guardedCommand(t *testing.T, lasts, killAfter time.Duration, argv ...string) *run {
	t.Helper()
	r := begin(t, lasts, killAfter, argv...)
	r.pid = r.event(Started).PID
	return r
}

// begin starts a guard, whose first event is still to come.
func begin(t *testing.T, lasts, killAfter time.Duration, argv ...string) *run {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p, err := Start(Options{
		Guard: guardCommand(write), Argv: argv, Deadline: Now().Add(lasts), KillAfter: killAfter,
		Farewell: &Farewell{Input: []byte(goodbye + "\n"), Within: time.Minute},
	})
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
	e := zktest.Receive(r.t, cmdtest.Soon, r.Events(), "%s", kind)
	require.Equal(r.t, kind, e.Kind, "%+v", e)
	return e
}

// line is the next line that the command prints; "" at the end.
func (r *run) line() string {
	r.t.Helper()
	return zktest.Receive(r.t, cmdtest.Soon, r.lines, "the command prints a line")
}

// number is a process id that the command prints.
func (r *run) number() int {
	r.t.Helper()
	n, err := strconv.Atoi(r.line())
	require.NoError(r.t, err)
	return n
}

// withTime gives f ever more time until it reports that this was enough: what
// other processes do in a given time depends on how busy the machine is.
func withTime(t *testing.T, f func(enough time.Duration) bool) {
	t.Helper()
	for enough := 300 * time.Millisecond; !f(enough); enough *= 4 {
		require.Less(t, enough, cmdtest.Soon, "no time is enough")
	}
}

func TestACommandThatCannotBeRunIsReportedAsByAShell(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("echo never\n"), 0o600))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, want := range map[string]int{
		"/no/such/file": 127, "no-such-command-anywhere": 127, dir: 126, plain: 126, "plain": 126, "/no/such/caf\xe9": 127,
	} {
		e := begin(t, time.Minute, 0, name).event(Failed)
		require.Equal(t, want, e.Code, name)
		require.Contains(t, string(e.Message), name)
	}
}

func TestAScriptWithoutInterpreterLineIsRunByTheShell(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	zktest.WriteProgram(t, script, []byte("echo \"$1\"; exit 3\n"), 0o700)
	r := guardedCommand(t, time.Minute, 0, script, "argument")
	require.Equal(t, "argument", r.line())
	require.Equal(t, 3, r.event(Exited).ExitCode())
}

func TestACommandLineMayBeLongerThanAPipe(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 120_000)
	r := guardedCommand(t, time.Minute, 0, "sh", "-c", `echo ${#1} ${#2}`, "sh", long, long)
	require.Equal(t, "120000 120000", r.line())
	require.Equal(t, 0, r.event(Exited).ExitCode())
}

// deaf is a command that reports TERM and does not obey it.
const deaf = `trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done`

// KILL comes though the deadline moves after TERM.
func TestTermComesBeforeTheDeadlineAndKillAtIt(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		withTime(t, func(killAfter time.Duration) bool {
			r := guarded(t, time.Hour, killAfter, deaf)
			require.Equal(t, "ready", r.line())
			deadline := Now().Add(2 * killAfter)
			r.Extend(deadline)
			heard := r.line() == "term"
			require.GreaterOrEqual(t, Now(), deadline.Add(-killAfter), "TERM came too early")
			if moves {
				r.Extend(Now().Add(time.Hour))
			}
			e := r.event(Exited)
			require.Equal(t, 137, e.ExitCode())
			require.Equal(t, ByDeadline, e.Cause)
			require.GreaterOrEqual(t, e.At, deadline, "KILL came too early")
			return heard && e.At.Sub(deadline) < killAfter
		})
	}
}

func TestAnExtendedDeadlineLetsTheCommandFinish(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 100*time.Millisecond, `echo ready; sleep 1.2; exit 4`)
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
		require.Equal(t, "ready", r.line())
		r.Stop()
		heard := r.line() == "term"
		e := r.event(Exited)
		require.Equal(t, 137, e.ExitCode())
		require.Equal(t, ByStop, e.Cause)
		return heard
	})
}

func TestAStoppedCommandStillHearsTerm(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 20*time.Second,
		`trap 'echo term; exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done`)
	require.Equal(t, syscall.SIGSTOP, r.event(Stopped).Signal)
	r.Stop()
	require.Equal(t, 5, r.event(Exited).ExitCode())
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0,
		`trap 'wait; echo parent; exit 9' USR1; sh -c 'trap "echo child; exit" USR1; echo ready; while :; do sleep 0.01; done' & wait`)
	require.Equal(t, "ready", r.line())
	r.Signal(syscall.SIGUSR1)
	require.Equal(t, "child", r.line())
	require.Equal(t, "parent", r.line())
	require.Equal(t, 9, r.event(Exited).ExitCode())
}

func TestKillTakesTheWholeGroup(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `sleep 1000 & echo $!; wait`)
	child := r.number()
	r.Kill()
	e := r.event(Exited)
	require.Equal(t, ByKill, e.Cause)
	cmdtest.RequireGone(t, child)
}

func TestBackgroundProcessesOutliveACommandThatEndsByItself(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `sleep 1000 >/dev/null 2>&1 & echo $!`)
	child := r.number()
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	require.Equal(t, 0, r.event(Exited).ExitCode())
	require.True(t, cmdtest.Alive(child))
}

func TestWhatAStoppedCommandLeavesBehindHasTheSameTime(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 20*time.Second,
		`sh -c 'trap "sleep 0.2; echo cleaned; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`)
	require.Equal(t, "ready", r.line())
	r.Stop()
	require.Equal(t, 143, r.event(Exited).ExitCode())
	require.Equal(t, "cleaned", r.line())
}

func TestSignalsToTheOwnersGroupDoNotReachTheGuard(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `echo $PPID; while :; do sleep 0.01; done`)
	guard := r.number()
	group, err := unix.Getpgid(guard)
	require.NoError(t, err)
	require.NotEqual(t, unix.Getpgrp(), group)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP} {
		require.NoError(t, unix.Kill(guard, s))
	}
	r.Stop()
	require.Equal(t, ByStop, r.event(Exited).Cause)
}

// owner starts an owner process, and returns it with the command's process id,
// or 0 if it was too late to run the command.
func owner(t *testing.T, lasts time.Duration, script string) (p *cmdtest.Process, pid int) {
	t.Helper()
	return startOwner(t, exec.Command(os.Args[0], lasts.String(), script))
}

func startOwner(t *testing.T, cmd *exec.Cmd) (p *cmdtest.Process, pid int) {
	t.Helper()
	cmd.Env = []string{roleVariable + "=" + ownerRole}
	p = cmdtest.StartAs(t, cmd)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		var what Kind
		_, _ = fmt.Sscan(p.Stderr.String(), &what, &pid)
		return what == Started || what == Exited
	}, "the owner hears of the command")
	return p, pid
}

func TestAFrozenOwnersCommandEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	withTime(t, func(enough time.Duration) bool {
		lasts, begin := 5*enough, Now()
		p, pid := owner(t, lasts, `trap '' TERM; while :; do sleep 0.01; done`)
		if pid == 0 {
			return false
		}
		p.Signal(syscall.SIGSTOP)
		cmdtest.RequireGone(t, pid)
		require.GreaterOrEqual(t, Now().Sub(begin), lasts)
		p.Signal(syscall.SIGCONT)
		p.Tells("exited") // it learns of it when it wakes
		return true
	})
}

func TestACommandIsNotStartedWhenItIsTooLate(t *testing.T) {
	t.Parallel()
	r := begin(t, time.Second, 2*time.Second, "echo", "never")
	require.Equal(t, ByDeadline, r.event(Exited).Cause)
	_, open := <-r.lines
	require.False(t, open)
}

func TestACommandThatWasToldToEndIsInterruptedWhateverComesAfterwards(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, time.Minute,
		`trap 'echo term' TERM; trap 'echo tidied; exit 0' USR1; echo ready; while :; do sleep 0.01; done`)
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

// The first deadline leaves too little time, and the next one comes late.
func TestASignalThatComesBeforeTheCommandReachesIt(t *testing.T) {
	t.Parallel()
	r := begin(t, time.Hour, 2*time.Hour, "sleep", "1000")
	r.Signal(syscall.SIGTERM)
	r.Extend(Now().Add(3 * time.Hour))
	r.event(Started)
	require.Equal(t, 143, r.event(Exited).ExitCode())
}
