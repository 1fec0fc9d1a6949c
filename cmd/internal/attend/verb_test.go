//go:build linux

package attend_test

import (
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cli"
	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { cmdtest.Main(m, cli.Main) }

var kills = flag.Int("kills", 2, "how many holders are killed, one after the other")

// T is a session timeout that no test waits for.
const T = "60s"

// attendant starts one, at a socket in a folder with a short name.
func attendant(t *testing.T, args ...string) (p *cmdtest.Process, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "attend")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = dir + "/s"
	p = cmdtest.Start(t, append([]string{"attend", "--socket", socket}, args...)...)
	require.Equal(t, socket, p.Line())
	return p, socket
}

// lock starts a command under a lock, and returns when the
// command runs; its first line is a number.
func lock(t *testing.T, w *zktest.World, socket, rel, script string) (p *cmdtest.Process, number int) {
	t.Helper()
	w.SetTimeout(time.Minute)
	p = cmdtest.Start(t, slices.Concat(attendedBy(w, socket), cmdtest.Sh(w.Path(rel), script))...)
	return p, p.Number()
}

// attendedBy are the options of a command with an attendant; "" stands for
// none.
func attendedBy(w *zktest.World, socket string) []string {
	options := []string{"--zk", w.ConnectString(), "--session-timeout", T}
	if socket != "" {
		options = append(options, "--attendant", socket)
	}
	return options
}

// attended waits until so many sessions are attended.
func attended(t *testing.T, socket string, n int) {
	t.Helper()
	want := regexp.MustCompile(`^` + strconv.Itoa(n) + ` session`)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return want.MatchString(cmdtest.Start(t, "attend", "--check", "--socket", socket).Gives(term.ExitOK))
	}, "%d sessions are attended", n)
}

// deathsAreSeen kills another holder, and waits until its node is gone: by
// then, an earlier death has been seen, too. With an attendant, it first waits
// until n sessions are attended; without one, the guards see the deaths.
func deathsAreSeen(t *testing.T, w *zktest.World, socket string, n int) {
	t.Helper()
	other, _ := lock(t, w, socket, "other", cmdtest.Busy)
	if socket != "" {
		attended(t, socket, n)
	}
	other.Signal(syscall.SIGKILL)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("other"), 0)
}

// A command dies with its owner, and an attendant, or the guard alone, frees
// the lock soon afterwards, although the session timeout is a minute. With
// -kills 100 -v the test prints the median and the longest delay.
func TestALockWhoseCommandWasKilledIsHeldByTheNextSoon(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		_, socket := attendant(t)
		for by, socket := range map[string]string{"attendant": socket, "guard": ""} {
			var took []time.Duration
			p, pid := lock(t, w, socket, by, cmdtest.Busy)
			for range *kills {
				if socket != "" {
					attended(t, socket, 1)
				}
				next := cmdtest.Start(t, slices.Concat(attendedBy(w, socket), cmdtest.Sh(w.Path(by), cmdtest.Busy))...).
					InLine(w, w.Path(by), 2)
				killed := time.Now()
				p.Signal(syscall.SIGKILL)
				nextPid := next.Number()
				took = append(took, time.Since(killed))
				require.False(t, cmdtest.Alive(pid), "two commands run at a time")
				p, pid = next, nextPid
			}
			slices.Sort(took)
			t.Logf("%d kills, by the %s: the next command runs after %v (median), %v (longest)", len(took), by,
				took[len(took)/2], took[len(took)-1])
			require.Less(t, took[len(took)-1], 30*time.Second)
			p.EndsBy(syscall.SIGTERM, 143)
		}
	})
}

// Without an attendant, too, nothing is released while something of the command
// may act.
func TestTheGuardOfAKilledOwnerClosesTheSessionWhenTheCommandHasEnded(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p, guard := lock(t, w, "", "l", guardAndReaper)
	reaper, pid := p.Number(), p.Number()
	thaw := freeze(t, guard)
	p.Signal(syscall.SIGKILL)
	deathsAreSeen(t, w, "", 0)
	cmdtest.RequireGone(t, pid) // by the reaper
	thaw()
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	cmdtest.RequireGone(t, reaper)
}

// A daemon of the command may act, and no guard stops it: the session is left
// to expire.
func TestWhatACommandLeavesBehindKeepsTheSessionOfItsKilledOwner(t *testing.T) {
	_, socket := attendant(t, "--grace", "1ms")
	for name, c := range map[string]struct {
		socket string
		args   []string
	}{"guard": {"", []string{"lock"}}, "attendant": {socket, []string{"shards", "--keys", "a"}}} {
		t.Run(name, func(t *testing.T) { keepsTheSession(t, c.socket, c.args...) })
	}
}

// keepsTheSession kills the owner of a command that leaves a daemon behind.
func keepsTheSession(t *testing.T, socket string, verb ...string) {
	t.Helper()
	w := zktest.New(t, zktest.Embedded)
	w.SetTimeout(time.Minute)
	p := cmdtest.Start(t, slices.Concat(attendedBy(w, socket), verb,
		[]string{w.Path("l"), "--", "sh", "-c", `setsid sleep 1000 >/dev/null 2>&1 & echo $!; echo $$; exec sleep 1000`})...)
	daemon, pid := p.Number(), p.Number()
	process, err := os.FindProcess(daemon)
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() })
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		session, err := unix.Getsid(daemon)
		return err == nil && session == daemon
	}, "it is a daemon")
	if socket != "" {
		attended(t, socket, 1)
	}
	p.Signal(syscall.SIGKILL)
	cmdtest.RequireGone(t, pid)
	deathsAreSeen(t, w, socket, 2)
	require.True(t, cmdtest.Alive(daemon))
	owned := func() bool {
		return slices.ContainsFunc(w.Embedded().Nodes(), func(n zkembed.Node) bool {
			return n.Stat.EphemeralOwner != 0 && !strings.HasPrefix(n.Path, w.Path("other"))
		})
	}
	require.True(t, owned())
	require.NoError(t, process.Kill())
	zktest.Eventually(t, cmdtest.Soon, func() bool { return !owned() }, "the session is closed")
}

// guardAndReaper is a script that tells whose command it is.
const guardAndReaper = `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; echo $$; exec sleep 1000`

// freeze stops the processes that guard a command, and has them stay so when
// the owner is killed: the kernel would continue a group of processes without a
// parent in its session, which this process becomes.
func freeze(t *testing.T, pids ...int) (thaw func()) {
	t.Helper()
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	for _, pid := range pids {
		require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	}
	thaw = sync.OnceFunc(func() {
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// The owner is dead, and its guard cannot stop the command yet: the attendant
// leaves the session alone, even an attendant that was started after the
// command: the guard was given the new connection, too.
func TestTheSessionIsKeptWhileTheCommandOfAKilledOwnerRuns(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		first, socket := attendant(t, "--grace", "1ms")
		for _, restarted := range []bool{false, true} {
			p, guard := lock(t, w, socket, "l", guardAndReaper)
			reaper, pid := p.Number(), p.Number()
			attended(t, socket, 1)
			if restarted {
				first.Signal(syscall.SIGKILL)
				<-first.Exited
				cmdtest.Start(t, "attend", "--socket", socket, "--grace", "1ms").Begun()
				attended(t, socket, 1)
			}
			thaw := freeze(t, guard, reaper)
			p.Signal(syscall.SIGKILL)
			deathsAreSeen(t, w, socket, 2)
			require.True(t, cmdtest.Alive(pid))
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 1) // the session was not closed
			thaw()
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
			require.False(t, cmdtest.Alive(pid))
		}
	})
}

// What guards the command was killed, and something of it may act: the session
// is left to run out, also by the attendant.
func TestASessionThatIsLeftToRunOutIsNotClosed(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	_, socket := attendant(t, "--grace", "1ms")
	w.SetTimeout(20 * time.Second)
	p := cmdtest.Mortal(t, w, append([]string{"--attendant", socket}, cmdtest.Sh(w.Path("l"), guardAndReaper)...)...)
	guard, reaper := p.Number(), p.Number()
	attended(t, socket, 1)
	require.NoError(t, unix.Kill(reaper, unix.SIGSTOP))
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.NoError(t, unix.Kill(reaper, unix.SIGKILL))
	require.Equal(t, term.ExitLost, p.Exit())
	attended(t, socket, 0)
	deathsAreSeen(t, w, socket, 1)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 1)
}

func TestACommandWithoutAnAttendantSaysSoOnceAndRuns(t *testing.T) {
	w := cmdtest.World(t)
	locking := append(cmdtest.Target(w), cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
	sharing := append([]string{"--attendant", "/nowhere/s"},
		append(cmdtest.Target(w), "shards", "--keys", "a", w.Path("shards"), "-c", "echo has; sleep 1000")...)
	cmdtest.Start(t, sharing...).Begun().Tells("no attendant")
	byOption := exec.Command(cmdtest.Coorddemo(t), append([]string{"--attendant", "/nowhere/s"}, locking...)...)
	byVariable := exec.Command(cmdtest.Coorddemo(t), locking...)
	byVariable.Env = []string{"ZKCOORD_ATTEND=/nowhere/s"}
	for _, cmd := range []*exec.Cmd{byOption, byVariable} {
		p := cmdtest.StartAs(t, cmd).Begun()
		p.Tells("no attendant")
		p.LetGo(5)
		require.Equal(t, 1, strings.Count(p.Stderr.String(), "no attendant"))
	}
}

func TestTheAttendantIsServedByASocketOfSystemds(t *testing.T) {
	w := cmdtest.World(t)
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
	require.NoError(t, err)
	file, err := l.File()
	require.NoError(t, err)
	// The process must know its own number, as systemd tells it.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" attend`, cmdtest.Coorddemo(t))
	cmd.ExtraFiles, cmd.Env = []*os.File{file}, []string{"LISTEN_FDS=1"}
	p := cmdtest.StartAs(t, cmd)
	require.Equal(t, dir+"/s", p.Line())
	deathsAreSeen(t, w, dir+"/s", 1)
	p.EndsBy(syscall.SIGTERM, 0)
	require.NoError(t, file.Close())
	require.NoError(t, l.Close())
}

func TestTheAttendantsMemoryIsInNoCoreFile(t *testing.T) {
	p, _ := attendant(t)
	limits, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/limits")
	require.NoError(t, err)
	require.Regexp(t, `Max core file size +0 +0 `, string(limits))
}

func TestTheAttendantsMetricsTellWhatItDid(t *testing.T) {
	w := cmdtest.World(t)
	dir := t.TempDir()
	p := cmdtest.Start(t, "--json", "attend", "--socket", dir+"/s", "--metrics", "127.0.0.1:0")
	told := cmdtest.Parse[map[string]string](t, p.Line())
	require.Equal(t, dir+"/s", told["socket"])
	deathsAreSeen(t, w, dir+"/s", 1)
	scrape := func() string {
		answer, err := http.Get(told["metrics"])
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}
	zktest.Eventually(t, cmdtest.Soon,
		func() bool { return strings.Contains(scrape(), "\nzkcoord_attend_closed_total 1\n") }, "a session was closed")
	text := scrape()
	for _, line := range []string{
		"# TYPE zkcoord_attend_closed_total counter", "zkcoord_attend_deaths_total 1", "zkcoord_attend_sessions 0",
		"zkcoord_attend_failed_total 0",
	} {
		require.Contains(t, text, line+"\n")
	}
	require.Regexp(t, `zkcoord_attend_close_seconds_max (0\.[2-9]|[1-9])`, text)
	require.NotContains(t, p.Stderr.String(), "password")
	require.Contains(t, p.Stderr.String(), "closed the session of a process that has died")
}

func TestTheDashboardShowsTheAttendantsMetrics(t *testing.T) {
	t.Parallel()
	shown := string(cmdtest.Must(os.ReadFile("../../../contrib/prom/dashboard.json")))
	names := regexp.MustCompile(`"(zkcoord_attend_\w+)"`).
		FindAllStringSubmatch(string(cmdtest.Must(os.ReadFile("verb.go"))), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Regexp(t, name[1]+`\b`, shown)
	}
}

func TestAnAttendantThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	_, socket := attendant(t)
	cmdtest.Start(t, "attend", "--socket", socket).Ends(term.ExitFailed, "an attendant is there already", "--socket")
	cmdtest.Start(t, "attend", "--socket", "/nowhere/s").Ends(term.ExitFailed, "no such file", "--socket")
	cmdtest.Start(t, "attend", "--check", "--socket", "/nowhere/s").Ends(term.ExitUnavailable, "no attendant")
	for says, args := range map[string][]string{
		"octal": {"--mode", "rw"}, "must be positive": {"--most", "0"}, "HOST:PORT": {"--metrics", "nowhere"},
		"positive": {"--grace", "0"},
	} {
		cmdtest.Start(t, append([]string{"attend", "--socket", socket}, args...)...).Ends(term.ExitUsage, says)
	}
}
