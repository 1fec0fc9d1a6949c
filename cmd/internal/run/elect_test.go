//go:build linux || darwin || freebsd || openbsd

package run

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestElectRunsItsCommandWhileItLeads(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		observer := cmdtest.On(t, w, "elect", "--observe", path)
		require.Equal(t, "nobody leads", observer.Line())
		require.Equal(t, term.ExitFailed, cmdtest.On(t, w, "elect", "--who", path).Exit())
		one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "one:80")...).Begun()
		require.Equal(t, "one:80", observer.Line())
		two := cmdtest.On(t, w, cmdtest.Elect(path, `echo $COORD_TOKEN; exit 9`, "--data", "two:80")...).InLine(w, path, 2)
		who := cmdtest.Parse[leaderNews](t, cmdtest.On(t, w, "--json", "elect", "--who", path).Line())
		require.True(t, who.Leads)
		require.Equal(t, "one:80", *who.Data)
		one.LetGo(5)
		require.Greater(t, int64(two.Number()), who.Token)
		require.Equal(t, 9, two.Exit())
		if line := observer.Line(); line != "nobody leads" { // it sees the latest; two was quick
			require.Equal(t, "two:80", line)
			require.Equal(t, "nobody leads", observer.Line())
		}
		observer.EndsBy(syscall.SIGTERM, 0)
	})
}

func TestALeaderThatIsLostExitsOrStandsAgain(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		once := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy)...)
		cmd := once.Number()
		deleteLeader(t, w, path)
		require.Equal(t, term.ExitLost, once.Exit())
		cmdtest.RequireGone(t, cmd)

		again := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, "--again")...)
		first := again.Number()
		deleteLeader(t, w, path)
		second := again.Number()
		require.NotEqual(t, first, second)
		cmdtest.RequireGone(t, first)
		again.EndsBy(syscall.SIGTERM, 143)
		cmdtest.RequireGone(t, second)
		cmdtest.AwaitContenders(t, w.Admin(), path, 0)
	})
}

// Its leadership is lost while the command, which was told to end, tidies up.
func TestALeaderThatWasToldToEndDoesNotStandAgain(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w,
		cmdtest.Elect(w.Path("e"), `trap 'echo told' TERM; echo begun; while :; do sleep 0.01; done`, "--again")...)
	require.Equal(t, "begun", p.Line())
	p.Signal(syscall.SIGTERM)
	require.Equal(t, "told", p.Line())
	deleteLeader(t, w, w.Path("e"))
	require.Equal(t, term.ExitLost, p.Exit())
}

// The command is gone by the time that it leads again.
func TestALeaderWhoseCommandIsGoneDoesNotStandAgain(t *testing.T) {
	w, cmd := cmdtest.World(t), filepath.Join(t.TempDir(), "cmd")
	zktest.WriteProgram(t, cmd, []byte("#!/bin/sh\necho begun; while :; do sleep 0.01; done\n"), 0o700)
	p := cmdtest.On(t, w, "elect", "--again", w.Path("e"), "--", cmd)
	require.Equal(t, "begun", p.Line())
	require.NoError(t, os.Remove(cmd))
	deleteLeader(t, w, w.Path("e"))
	require.Equal(t, 127, p.Exit())
}

// The status of a loss is the command's own.
func TestACommandThatExitsAsAfterALossHasLostNothing(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), `echo begun; exit 76`, "--again")...)
	require.Equal(t, "begun", p.Line())
	require.Equal(t, term.ExitLost, p.Exit())
	p = cmdtest.On(t, w, "--json", "lock", w.Path("l"), "--", "sh", "-c", "exit 76")
	require.Equal(t, term.ExitLost, p.Exit())
	require.Contains(t, p.Stderr.String(), `"lost":false`)
}

func deleteLeader(t *testing.T, w *zktest.World, path string) {
	t.Helper()
	names, _, err := w.Admin().Children(path)
	require.NoError(t, err)
	names = cmdtest.ContendersOf(names)
	require.Len(t, names, 1)
	require.NoError(t, w.Admin().Delete(path+"/"+names[0], -1))
}

func TestALeaderIsAskedToStepDown(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.Busy)...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("e"), "--wait").Exit())
	require.Equal(t, 143, p.Exit())
}

func TestACandidateThatIsNotElectedInTimeGivesUp(t *testing.T) {
	w := cmdtest.World(t)
	leader := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.UntilEOF)...).Begun()
	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), "echo never", "--timeout", timeout)...)
	})
	leader.LetGo(5)
}

// A start that takes as long as the wait is no reason for systemd to kill it.
func TestAStandbyTellsItsServiceManagerThatItWaits(t *testing.T) {
	w := cmdtest.World(t)
	dir, err := os.MkdirTemp("", "") // the name of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Close() })
	require.NoError(t, manager.SetReadDeadline(time.Now().Add(cmdtest.Soon)))
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo holds; "+cmdtest.UntilEOF)...).Begun()

	cmd := exec.Command(cmdtest.Coorddemo(t),
		append(cmdtest.Target(w), cmdtest.Sh(w.Path("l"), "echo ready; "+cmdtest.UntilEOF)...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+manager.LocalAddr().String(), "WATCHDOG_USEC=200000")
	standby := cmdtest.StartAs(t, cmd)
	packet := make([]byte, 4096)
	for range 3 { // also again and again
		n, err := manager.Read(packet)
		require.NoError(t, err, "the service manager is told nothing")
		require.Equal(t, "EXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1\n", string(packet[:n]))
	}
	require.NoError(t, holder.In.Close())
	require.Equal(t, "ready", standby.Line())
	standby.LetGo(5)
}

func TestALeaderWhoseCheckFailsEndsItsCommand(t *testing.T) {
	w := cmdtest.World(t)
	path, well := w.Path("e"), filepath.Join(t.TempDir(), "well")
	health := []string{"--health", "test -e " + well, "--health-every", "500ms"}
	mark := func() { require.NoError(t, os.WriteFile(well, nil, 0o600)) }
	mark()
	once := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, health...)...)
	cmd := once.Number()
	require.NoError(t, os.Remove(well))
	once.Ends(term.ExitLost, "health check failed", "test -e")
	cmdtest.RequireGone(t, cmd)

	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Elect(path, "echo never", append(health, "--timeout", timeout)...)...)
	})
	mark()
	again := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, append(health, "--again")...)...)
	first := again.Number()
	standby := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF)...).InLine(w, path, 2)
	require.NoError(t, os.Remove(well))
	standby.Begun()
	cmdtest.RequireGone(t, first)
	cmdtest.AwaitContenders(t, w.Admin(), path, 1)
	mark()
	cmdtest.AwaitContenders(t, w.Admin(), path, 2)
	standby.LetGo(5)
	require.NotEqual(t, first, again.Number())
	again.EndsBy(15, 143)
}

func TestTheLeadIsHandedToTheOneWhoIsNamed(t *testing.T) {
	w := cmdtest.World(t)
	path := w.Path("e")
	one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, "--data", "one")...).Begun()
	two := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "two")...).InLine(w, path, 2)
	three := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "three")...).InLine(w, path, 3)
	cmdtest.On(t, w, "elect", "--transfer", "nobody", path).Ends(term.ExitFailed, "nobody")
	handed := cmdtest.On(t, w, "elect", "--transfer", "three", path)
	require.Equal(t, 143, one.Exit())
	three.Begun()
	require.Equal(t, "three", handed.Gives(0))
	three.LetGo(5)
	two.Begun()
	cmdtest.On(t, w, "elect", "--transfer", "two", path).Ends(0)
	two.LetGo(5)
}

func TestALeaderThatIgnoresTheRequestLeadsOn(t *testing.T) {
	w := cmdtest.World(t)
	path := w.Path("e")
	one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--on-revoke=ignore")...).Begun()
	two := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "same", "--priority", "-1")...).
		InLine(w, path, 2)
	three := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "same", "--priority", "3")...).
		InLine(w, path, 3)
	cmdtest.On(t, w, "elect", "--transfer", "same", path).Ends(term.ExitFailed, "2 candidates")
	names, _, err := w.Admin().Children(path)
	require.NoError(t, err)
	last := slices.MaxFunc(cmdtest.ContendersOf(names),
		func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
	cmdtest.On(t, w, "elect", "--transfer", last, "--timeout", "1s", path).Ends(term.ExitTimeout, "leads on")
	one.LetGo(5)
	three.Begun()
	three.LetGo(5)
	two.Begun()
	two.LetGo(5)
}

func TestATransferEndsThoughTheServerHangs(t *testing.T) {
	w := cmdtest.World(t)
	leader := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.UntilEOF)...).Begun()
	hung := w.Embedded().Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: w.Path("e")},
		zkembed.Hang())
	cmdtest.On(t, w, "elect", "--transfer", "x", "--timeout", "1s", w.Path("e")).
		Ends(term.ExitTimeout, "no answer in time")
	asked := hung.Fired()
	require.Positive(t, asked)
	interrupted := cmdtest.On(t, w, "elect", "--transfer", "x", w.Path("e"))
	zktest.Eventually(t, coordtest.Soon, func() bool { return hung.Fired() > asked }, "the second transfer")
	interrupted.EndsBy(syscall.SIGINT, 128+int(syscall.SIGINT))
	hung.Remove()
	leader.LetGo(5)
}

// The check hangs when the lead is lost.
func TestNoCheckOutlivesItsLeader(t *testing.T) {
	w := cmdtest.World(t)
	path, dir := w.Path("e"), t.TempDir()
	hangs := `cd ` + dir + `; test -e well || exec touch well; echo $$ >new; mv new hangs; while :; do sleep 0.1; done`
	once := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, "--health", hangs, "--health-every", "1500ms")...).Begun()
	var check int
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "hangs"))
		_, _ = fmt.Sscan(string(text), &check)
		return err == nil
	}, "the check hangs")
	deleteLeader(t, w, path)
	require.Equal(t, term.ExitLost, once.Exit())
	require.False(t, cmdtest.Alive(check))
}
