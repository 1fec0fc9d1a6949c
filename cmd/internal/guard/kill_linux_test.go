package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// jobs is a script with descendants that have groups of their own; it prints
// its parent's process id, which is the guard's, and theirs.
func jobs() string {
	return fmt.Sprintf(`echo $PPID; %s=%s %s & timeout 1000 sh -c 'echo $$; while :; do sleep 0.1; done' & wait`,
		roleVariable, shellRole, os.Args[0])
}

// withJobs starts that script and returns the process ids of the guard, and of
// the script and the jobs.
func withJobs(t *testing.T) (r *run, guard int, pids []int) {
	t.Helper()
	r = guarded(t, time.Hour, 0, jobs())
	guard, pids = r.number(), []int{r.pid, r.number(), r.number()}
	t.Cleanup(func() { // the test shows that they live on
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	for _, job := range pids[1:] {
		group, err := unix.Getpgid(job)
		require.NoError(t, err)
		require.NotEqual(t, pids[0], group, "the job has no group of its own, and this test proves nothing")
	}
	return r, guard, pids
}

func requireDead(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.False(t, cmdtest.Alive(pid), "process %d lives", pid)
	}
}

// By these names ps, top and the kernel's log show them, and pidof and killall
// find them, as cmdline and as comm.
func TestGuardAndReaperHaveNamesAndGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `echo $PPID; exec sleep 1000`)
	guard := r.number()
	for pid, want := range map[int]string{guard: guardName, parentOfProcess(t, guard): reaperName} {
		for file, text := range map[string]string{"comm": want + "\n", "cmdline": want + "\x00" + Verb + "\x00"} {
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			require.NoError(t, err)
			require.Equal(t, text, string(name))
		}
		group, err := unix.Getpgid(pid)
		require.NoError(t, err)
		require.Equal(t, pid, group)
	}
}

func TestKillTakesTheJobsOfAShellWithJobControl(t *testing.T) {
	t.Parallel()
	r, _, pids := withJobs(t)
	r.Kill()
	require.Equal(t, ByKill, r.event(Exited).Cause)
	requireDead(t, pids...)
}

func TestWhenTheGuardIsKilledAllIsDeadBeforeTheOwnerHearsOfIt(t *testing.T) {
	t.Parallel()
	r, guard, pids := withJobs(t)
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	e := r.event(Gone)
	requireDead(t, pids...)
	require.True(t, e.Over())
}

func TestWhenTheReaperIsKilledTheGuardEndsTheCommand(t *testing.T) {
	t.Parallel()
	r, guard, pids := withJobs(t)
	require.NoError(t, unix.Kill(parentOfProcess(t, guard), unix.SIGKILL))
	e := r.event(Exited)
	requireDead(t, pids...)
	require.Equal(t, ByKill, e.Cause)
	require.True(t, e.Over())
}

func TestWhenGuardAndReaperAreKilledTheOwnerIsNotSure(t *testing.T) {
	t.Parallel()
	r, guard, pids := withJobs(t)
	reaper := parentOfProcess(t, guard)
	require.NoError(t, unix.Kill(reaper, unix.SIGSTOP)) // it can do nothing in between
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.NoError(t, unix.Kill(reaper, unix.SIGKILL))
	require.False(t, r.event(Gone).Over())
	cmdtest.RequireGone(t, pids[0])
}

func TestWhenTheGuardIsFrozenAbandonKillsAll(t *testing.T) {
	t.Parallel()
	r, guard, pids := withJobs(t)
	require.NoError(t, unix.Kill(guard, unix.SIGSTOP))
	r.Abandon()
	e := r.event(Gone)
	requireDead(t, append(pids, guard)...)
	require.True(t, e.Over())
}

func TestAFrozenGuardKillsTheCommandWhenItGoesOnAfterTheDeadline(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `trap 'echo told' USR1; echo $PPID; while :; do sleep 0.01; done`)
	guard := r.number()
	const lasts = 3 * time.Second
	r.Extend(Now().Add(lasts))
	r.Signal(syscall.SIGUSR1)
	require.Equal(t, "told", r.line(), "it knows the deadline, too")
	require.NoError(t, unix.Kill(guard, unix.SIGSTOP))
	<-time.After(lasts)
	require.NoError(t, unix.Kill(guard, unix.SIGCONT))
	e := r.event(Exited)
	require.Equal(t, 137, e.ExitCode())
	require.Equal(t, ByDeadline, e.Cause)
}

func TestWhenOwnerAndGuardAreKilledAtOnceNothingLivesOn(t *testing.T) {
	t.Parallel()
	owner, pid := owner(t, time.Hour, jobs())
	guard, pids := owner.Number(), []int{pid, owner.Number(), owner.Number()}
	require.NoError(t, unix.Kill(guard, unix.SIGSTOP)) // it can do nothing in between
	owner.Signal(syscall.SIGKILL)
	_ = unix.Kill(guard, unix.SIGKILL) // the reaper may have done it
	for _, pid := range pids {
		cmdtest.RequireGone(t, pid)
	}
}

func TestTheGuardKeepsTheDeadlineAlsoWhenItsReportsAreNotRead(t *testing.T) {
	t.Parallel()
	withTime(t, func(enough time.Duration) bool {
		// It stops itself again and again; the other continues it. Each stop is
		// a report.
		owner, pid := owner(t, 6*enough,
			`trap '' TERM; (while kill -CONT $$; do :; done) & while :; do kill -STOP $$; done`)
		if pid == 0 {
			return false
		}
		owner.Signal(syscall.SIGSTOP)
		cmdtest.RequireGone(t, pid)
		owner.EndsBy(syscall.SIGCONT, 0)
		reports := strings.Split(strings.TrimSpace(owner.Stderr.String()), "\n")
		last := reports[len(reports)-1]
		var late time.Duration // of the end, as the guard saw it: other processes may be late themselves
		_, err := fmt.Sscanf(last, "exited 0 [] %d", &late)
		require.NoError(t, err, "the last report is %q", last)
		return len(reports) > 10 && late < enough
	})
}

func TestThePriorityIsTheGuardsAndNotTheCommands(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("left out: priority is for root")
	}
	r := guarded(t, time.Hour, 0, `echo $PPID; exec sleep 1000`)
	guard := r.number()
	for _, keeper := range []int{guard, parentOfProcess(t, guard)} {
		require.Eventually(t, func() bool {
			return policy(t, keeper) == unix.SCHED_RR && status(t, keeper, "VmLck") != "0 kB" &&
				(!mayBeSpared(t) || spared(t, keeper) == "-1000")
		}, cmdtest.Soon, time.Millisecond)
	}
	require.Equal(t, policy(t, os.Getpid()), policy(t, r.pid))
	require.Equal(t, spared(t, os.Getpid()), spared(t, r.pid))
}

// spared is a process's score for being killed when memory runs out.
func spared(t *testing.T, pid int) string {
	t.Helper()
	adj, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	require.NoError(t, err)
	return strings.TrimSpace(string(adj))
}

// mayBeSpared reports whether this process may have that changed; not every
// root may, as in a container.
func mayBeSpared(t *testing.T) bool {
	t.Helper()
	capabilities, err := strconv.ParseUint(status(t, os.Getpid(), "CapEff"), 16, 64)
	require.NoError(t, err)
	return capabilities&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// status is a line of the kernel's report on a process.
func status(t *testing.T, pid int, name string) string {
	t.Helper()
	lines, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	require.FailNow(t, "no such line", name)
	panic("unreachable")
}

func policy(t *testing.T, pid int) uint32 {
	t.Helper()
	attr, err := unix.SchedGetAttr(pid, 0)
	require.NoError(t, err)
	return attr.Policy
}

func parentOfProcess(t *testing.T, pid int) int {
	t.Helper()
	session, err := unix.Getsid(pid)
	require.NoError(t, err)
	p, known := processOf(pid, session)
	require.True(t, known)
	return p.parent
}

func TestACommandThatChangesItsUserIsReported(t *testing.T) {
	t.Parallel()
	plain, changing := cmdtest.ForAllUsers(t, "/proc/self/exe", "/proc/self/exe")
	cmd := exec.Command(plain, "1h", fmt.Sprintf("%s=%s exec %s", roleVariable, changedRole, changing))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	owner, pid := startOwner(t, cmd)
	require.Equal(t, pid, owner.Number(), "the command has changed its user")
	owner.Tells(fmt.Sprintf("denied 0 [%d] ", pid))
	require.True(t, cmdtest.Alive(pid))
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	owner.Tells("exited 0 [] ")
}

// Not in parallel: the processes of other tests would get the descriptor, too.
func TestTheCommandGetsTheThreeStandardDescriptorsOnly(t *testing.T) {
	left, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer left.Close()
	_, err = unix.FcntlInt(left.Fd(), unix.F_SETFD, 0) // as left open by the parent of the owner
	require.NoError(t, err)
	r := guardedCommand(t, time.Hour, 0, "ls", "/proc/self/fd")
	r.event(Exited)
	var open []string
	for line := range r.lines {
		open = append(open, line)
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, open, "3 is the directory that ls reads")
}

func TestThePagesOfTheProgramsFileAreGivenBack(t *testing.T) {
	var failed unix.Errno
	text(t, func(from, to uintptr, _ int) {
		_, _, failed = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_POPULATE_READ)
	})
	if failed != 0 {
		t.Skip("left out: needs a kernel that reads pages ahead (5.14)")
	}
	resident := func() (all int) {
		text(t, func(_, _ uintptr, kilobytes int) { all += kilobytes })
		return all
	}
	before := resident()
	require.NotZero(t, before)
	shed()
	require.Less(t, resident(), before)
}

// text calls each with the mappings of the program's own text, and how much of
// each is in memory.
func text(t *testing.T, each func(from, to uintptr, kilobytes int)) {
	program, err := os.Executable()
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	var from, to uintptr
	ours, kilobytes := false, 0
	for line := range strings.Lines(string(maps)) {
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kilobytes); n == 1 && ours {
			each(from, to, kilobytes)
		} else if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			ours = strings.Contains(line, " r-xp ") && strings.Contains(line, program)
		}
	}
}

const headlessRole = "headless"

// It runs here since init has the first thread.
func init() {
	if os.Getenv(roleVariable) == headlessRole {
		runtime.LockOSThread()
		headlessMain()
	}
}

// headlessMain starts a process, prints its id, and ends its own first thread,
// while another waits.
func headlessMain() {
	job := exec.Command("sleep", "1000")
	if err := job.Start(); err != nil {
		panic(err)
	}
	fmt.Println(job.Process.Pid)
	go func() { _ = job.Wait() }()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// A process whose first thread has ended looks like one that has ended, but is
// still the parent of its children.
func TestAProcessWithoutItsFirstThreadAndItsChildrenAreReached(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleVariable + "=" + headlessRole}
	p := cmdtest.StartAs(t, cmd)
	child := p.Number()
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	}, "the first thread does not end")
	require.NoError(t, unix.Kill(child, 0), "the child lives")
	var reached []int
	eachDescendant(func(pid int) { reached = append(reached, pid) })
	require.Contains(t, reached, child)
	require.Contains(t, reached, p.Pid(), "its other threads run")
}

// Guard and reaper are two of the three processes of a command that runs, and
// each of them lives as long.
func TestAGuardStartsWithoutWhatOnlyTheVerbsNeed(t *testing.T) {
	t.Parallel()
	initialised := func(arg string, status int) string {
		cmd := exec.Command(filepath.Join(cmdtest.Built(t), "zkcoord"), arg)
		cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
		out, _ := cmd.CombinedOutput()
		require.Equal(t, status, cmd.ProcessState.ExitCode())
		return string(out)
	}
	asVerb, asGuard := initialised("version", 0), initialised(Verb, exitUsage)
	require.Contains(t, asGuard, "this verb is for the program itself: no orders")
	for _, pkg := range []string{"net/http", "github.com/alecthomas/kong", "github.com/zkcoord/zkcoord/cmd/internal/cli"} {
		require.Contains(t, asVerb, "init "+pkg+" ")
		require.NotContains(t, asGuard, "init "+pkg+" ")
	}
}

// The kernel closes a dead process's files one after the other, which takes
// time on a busy machine: here the owner can still read.
func TestADeadOwnerNeedsAFarewellHoweverSlowlyItDies(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, 0, `echo ready; exec sleep 1000`)
	require.Equal(t, "ready", r.line())
	require.NoError(t, r.life.Close())
	require.Equal(t, goodbye, r.line())
}

func TestAnOwnerThatLivesNeedsNoFarewell(t *testing.T) {
	for name, end := range map[string]func(*run){
		"ended": func(r *run) { r.Stop(); r.event(Exited) },
		"abandon": func(r *run) { // of a guard that does not answer
			require.NoError(r.t, unix.Kill(parentOfProcess(t, r.pid), unix.SIGSTOP))
			r.Abandon()
			r.event(Gone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := guarded(t, time.Hour, 0, `echo ready; exec sleep 1000`)
			require.Equal(t, "ready", r.line())
			end(r)
			line, more := <-r.lines
			require.False(t, more, line)
		})
	}
}
