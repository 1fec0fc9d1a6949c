//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func elect(path, script string, options ...string) []string {
	return append(append([]string{"elect"}, options...), path, "--", "sh", "-c", script)
}

func TestElectRunsItsCommandWhileItLeads(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		observer := on(t, w, "elect", "--observe", path)
		require.Equal(t, "nobody leads", observer.line())
		require.Equal(t, exitFailed, on(t, w, "elect", "--who", path).exit())
		one := on(t, w, elect(path, untilEOF, "--data", "one:80")...)
		one.line()
		require.Equal(t, "one:80", observer.line())
		two := on(t, w, elect(path, `echo $COORD_TOKEN; exit 9`, "--data", "two:80")...)
		awaitContenders(t, w.Admin(), path, 2)
		who := parse[leaderNews](t, on(t, w, "--json", "elect", "--who", path).line())
		require.True(t, who.Leads)
		require.Equal(t, "one:80", *who.Data)
		require.NoError(t, one.in.Close())
		require.Equal(t, 5, one.exit())
		require.Greater(t, int64(two.number()), who.Token)
		require.Equal(t, 9, two.exit())
		if line := observer.line(); line != "nobody leads" { // it sees the latest; two was quick
			require.Equal(t, "two:80", line)
			require.Equal(t, "nobody leads", observer.line())
		}
		observer.signal(syscall.SIGTERM)
		require.Equal(t, 0, observer.exit())
	})
}

func TestALeaderThatIsLostExitsOrStandsAgain(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		once := on(t, w, elect(path, busy)...)
		cmd := once.number()
		deleteLeader(t, w, path)
		require.Equal(t, exitLost, once.exit())
		requireGone(t, cmd)

		again := on(t, w, elect(path, busy, "--again")...)
		first := again.number()
		deleteLeader(t, w, path)
		second := again.number()
		require.NotEqual(t, first, second)
		requireGone(t, first)
		again.signal(syscall.SIGTERM)
		require.Equal(t, 143, again.exit())
		requireGone(t, second)
		awaitContenders(t, w.Admin(), path, 0)
	})
}

func deleteLeader(t *testing.T, w *zktest.World, path string) {
	t.Helper()
	names, _, err := w.Admin().Children(path)
	require.NoError(t, err)
	names = contendersOf(names)
	require.Len(t, names, 1)
	require.NoError(t, w.Admin().Delete(path+"/"+names[0], -1))
}

func TestALeaderIsAskedToStepDown(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, elect(w.Path("e"), busy)...)
	p.line()
	require.Equal(t, 0, on(t, w, "revoke", w.Path("e"), "--wait").exit())
	require.Equal(t, 143, p.exit())
}

func TestElectThatCannotBe(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for _, args := range [][]string{
		{w.Path("e")},
		{"--who", "--observe", w.Path("e")},
		{"--who", w.Path("e"), "--", "true"},
		{"nowhere", "--", "true"},
		{"--data", "unlock", w.Path("e"), "--", "true"},
		{"--timeout", "-1", w.Path("e"), "--", "true"},
	} {
		require.Equal(t, exitUsage, on(t, w, append([]string{"elect"}, args...)...).exit(), "%v", args)
	}
	leader := on(t, w, elect(w.Path("e"), untilEOF)...)
	leader.line()
	require.Equal(t, exitTimeout, on(t, w, elect(w.Path("e"), "echo never", "--timeout", "2")...).exit())
	require.NoError(t, leader.in.Close())
	require.Equal(t, 5, leader.exit())
}
