//go:build linux || darwin || freebsd || openbsd

package run

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestElectRunsItsCommandWhileItLeads(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		observer := cmdtest.On(t, w, "elect", "--observe", path)
		require.Equal(t, "nobody leads", observer.Line())
		require.Equal(t, term.ExitFailed, cmdtest.On(t, w, "elect", "--who", path).Exit())
		one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "one:80")...)
		one.Line()
		require.Equal(t, "one:80", observer.Line())
		two := cmdtest.On(t, w, cmdtest.Elect(path, `echo $COORD_TOKEN; exit 9`, "--data", "two:80")...)
		cmdtest.AwaitContenders(t, w.Admin(), path, 2)
		who := cmdtest.Parse[leaderNews](t, cmdtest.On(t, w, "--json", "elect", "--who", path).Line())
		require.True(t, who.Leads)
		require.Equal(t, "one:80", *who.Data)
		require.NoError(t, one.In.Close())
		require.Equal(t, 5, one.Exit())
		require.Greater(t, int64(two.Number()), who.Token)
		require.Equal(t, 9, two.Exit())
		if line := observer.Line(); line != "nobody leads" { // it sees the latest; two was quick
			require.Equal(t, "two:80", line)
			require.Equal(t, "nobody leads", observer.Line())
		}
		observer.Signal(syscall.SIGTERM)
		require.Equal(t, 0, observer.Exit())
	})
}

func TestALeaderThatIsLostExitsOrStandsAgain(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
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
		again.Signal(syscall.SIGTERM)
		require.Equal(t, 143, again.Exit())
		cmdtest.RequireGone(t, second)
		cmdtest.AwaitContenders(t, w.Admin(), path, 0)
	})
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
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.Busy)...)
	p.Line()
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("e"), "--wait").Exit())
	require.Equal(t, 143, p.Exit())
}

func TestElectThatCannotBe(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for _, args := range [][]string{
		{w.Path("e")},
		{"--who", "--observe", w.Path("e")},
		{"--who", w.Path("e"), "--", "true"},
		{"nowhere", "--", "true"},
		{"--data", "unlock", w.Path("e"), "--", "true"},
		{"--timeout", "-1", w.Path("e"), "--", "true"},
	} {
		require.Equal(t, term.ExitUsage, cmdtest.On(t, w, append([]string{"elect"}, args...)...).Exit(), "%v", args)
	}
	leader := cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.UntilEOF)...)
	leader.Line()
	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), "echo never", "--timeout", timeout)...)
	})
	require.NoError(t, leader.In.Close())
	require.Equal(t, 5, leader.Exit())
}
