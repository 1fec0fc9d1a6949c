//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// member starts a process that runs a script in a round of n. Its session lasts
// long enough for a busy machine.
func member(t *testing.T, w *zktest.World, n int, script string, options ...string) *process {
	t.Helper()
	return memberFor(t, w, 20*time.Second, n, script, options...)
}

func memberFor(t *testing.T, w *zktest.World, session time.Duration, n int, script string, options ...string) *process {
	t.Helper()
	w.SetTimeout(max(session, zktest.SessionTimeout))
	args := append([]string{"--zk", w.ConnectString(), "--session-timeout", session.String(), "doublebarrier", "-n", strconv.Itoa(n)}, options...)
	return start(t, append(args, w.Path("b"), "--", "sh", "-c", script)...)
}

// inBarrier waits until so many processes are there, waiting or inside.
func inBarrier(t *testing.T, w *zktest.World, n int) {
	t.Helper()
	zktest.Eventually(t, soon, func() bool {
		names, _, err := w.Admin().Children(w.Path("b"))
		return (err == nil || n == 0) && max(0, len(names)-1) == n // ready is one of them
	}, "%d are at %s", n, w.Path("b"))
}

func TestCommandsStartTogetherAndFinishTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		const script = `echo $COORD_ROUND $COORD_MEMBERS $COORD_INDEX; cat >/dev/null`
		for round := range 2 {
			first, second := member(t, w, 3, script), member(t, w, 3, script)
			inBarrier(t, w, 2)
			require.Empty(t, first.lines, "the command runs though one has not come")
			require.Empty(t, second.lines, "the command runs though one has not come")
			all := []*process{first, second, member(t, w, 3, script)}
			var indexes []string
			for _, p := range all {
				says := strings.Fields(p.line())
				require.Equal(t, []string{strconv.Itoa(round + 1), "3"}, says[:2])
				indexes = append(indexes, says[2])
			}
			require.ElementsMatch(t, []string{"0", "1", "2"}, indexes)
			for i, p := range all {
				require.NoError(t, p.in.Close())
				if i < 2 {
					zktest.Eventually(t, soon, func() bool { return marked(t, w) == i+1 }, "its command has ended")
				}
			}
			for _, p := range all {
				require.Equal(t, 0, p.exit())
			}
			inBarrier(t, w, 0)
		}
	})
}

// marked counts the members that wait for the others to finish.
func marked(t *testing.T, w *zktest.World) (n int) {
	t.Helper()
	names, _, err := w.Admin().Children(w.Path("b"))
	require.NoError(t, err)
	for _, name := range names {
		if _, stat, err := w.Admin().Get(w.Path("b/" + name)); err == nil && stat.EphemeralOwner != 0 && stat.Version > 0 {
			n++
		}
	}
	return n
}

func TestACommandThatFailsIsMissingToTheOthers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bad := member(t, w, 3, "exit 7")
		inBarrier(t, w, 1)
		good := []*process{member(t, w, 3, "exit 0", "--timeout", "30"), member(t, w, 3, "exit 0")}
		require.Equal(t, 7, bad.exit())
		for _, p := range good {
			require.Equal(t, exitMissing, p.exit())
			require.Contains(t, p.stderr.String(), "1 of 3 members missing: [0]")
		}
		inBarrier(t, w, 0)
	})
}

func TestAProcessThatIsKilledInsideTakesItsCommandAlongAndIsMissing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		victim := memberFor(t, w, zktest.SessionTimeout, 2, stubborn)
		other := member(t, w, 2, "exit 0")
		pid := victim.number()
		victim.signal(syscall.SIGKILL)
		requireGone(t, pid)
		require.Equal(t, exitMissing, other.exit())
	})
}

func TestAPlaceThatIsLostEndsTheCommand(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		victim := member(t, w, 2, `echo $COORD_NODE; `+stubborn)
		other := member(t, w, 2, "exit 0")
		_, stat, err := w.Admin().Exists(victim.line())
		require.NoError(t, err)
		pid := victim.number()
		w.ExpireSession(stat.EphemeralOwner)
		require.Equal(t, exitLost, victim.exit())
		requireGone(t, pid)
		require.Equal(t, exitMissing, other.exit())
	})
}

func TestALateMemberIsToldSoOrWaitsForTheNextRound(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		first, second := member(t, w, 2, untilEOF), member(t, w, 2, `echo $$; cat >/dev/null`)
		first.line()
		second.line()
		late := member(t, w, 2, "echo never")
		require.Equal(t, exitBusy, late.exit())
		require.Empty(t, late.output())
		require.Contains(t, late.stderr.String(), "--next")
		next := member(t, w, 2, "echo $COORD_ROUND", "--next")
		inBarrier(t, w, 3)
		require.NoError(t, first.in.Close())
		require.NoError(t, second.in.Close())
		require.Equal(t, 5, first.exit())
		require.Equal(t, exitMissing, second.exit())
		require.Empty(t, next.lines)
		require.Equal(t, 0, member(t, w, 2, "exit 0").exit())
		require.Equal(t, "2", next.line())
		require.Equal(t, 0, next.exit())
	})
}

func TestADoubleBarriersTimeOutAndSignalsEndTheWaitAndLeaveNothing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, exitTimeout, member(t, w, 2, "echo never", "--timeout", "0.3").exit())
		inBarrier(t, w, 0)
		p := member(t, w, 2, "echo never")
		inBarrier(t, w, 1)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 128+int(syscall.SIGTERM), p.exit())
		require.Empty(t, p.output())
		inBarrier(t, w, 0)
	})
}

func TestASignalEndsTheWaitForTheOthersToFinish(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		hasty, other := member(t, w, 2, "exit 0"), member(t, w, 2, `echo $$; cat >/dev/null`)
		other.line()
		zktest.Eventually(t, soon, func() bool { return marked(t, w) == 1 }, "one has finished")
		hasty.signal(syscall.SIGINT)
		require.Equal(t, 128+int(syscall.SIGINT), hasty.exit())
		require.NoError(t, other.in.Close())
		require.Equal(t, exitMissing, other.exit())
	})
}

func TestDoubleBarrierTellsItsStoryInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "--json", "doublebarrier", "-n", "1", w.Path("b"), "--", "true")
	require.Equal(t, 0, p.exit())
	story := parse[map[string]any](t, strings.TrimSpace(p.stderr.String()))
	require.Equal(t, w.Path("b"), story["path"])
	require.EqualValues(t, 1, story["round"])
	require.EqualValues(t, 0, story["index"])
	require.EqualValues(t, 1, story["members"])
	require.EqualValues(t, 0, story["status"])
	require.Equal(t, false, story["lost"])
	require.Equal(t, []any{}, story["missing"])
}

func TestDoubleBarrierRefusesWhatCannotBeRight(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for says, args := range map[string][]string{
		"--members":         {"/b", "--", "true"},
		"no command":        {"-n", "2", "/b", "--"},
		"must start with /": {"-n", "2", "b", "--", "true"},
		"0 members":         {"-n", "0", "/b", "--", "true"},
		"4001 members":      {"-n", "4001", "/b", "--", "true"},
		"--timeout":         {"-n", "2", "--timeout", "0", "/b", "--", "true"},
		"invalid":           {"-n", "two", "/b", "--", "true"},
	} {
		p := on(t, w, append([]string{"doublebarrier"}, args...)...)
		require.Equal(t, exitUsage, p.exit(), "%q", args)
		if says != "invalid" {
			require.Contains(t, p.stderr.String(), says, "%q", args)
		}
	}
	for command, want := range map[string]int{"/no/such/file": 127, "/": 126} {
		require.Equal(t, want, on(t, w, "doublebarrier", "-n", "1", w.Path("b"), "--", command).exit(), fmt.Sprint(command))
	}
}
