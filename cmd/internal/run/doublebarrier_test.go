//go:build linux || darwin || freebsd || openbsd

package run

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestCommandsStartTogetherAndFinishTogether(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		const script = `echo $COORD_ROUND $COORD_MEMBERS $COORD_INDEX; cat >/dev/null`
		for round := range 2 {
			first, second := cmdtest.Member(t, w, 3, script), cmdtest.Member(t, w, 3, script)
			cmdtest.InBarrier(t, w, 2)
			require.Empty(t, first.Lines, "the command runs though one has not come")
			require.Empty(t, second.Lines, "the command runs though one has not come")
			all := []*cmdtest.Process{first, second, cmdtest.Member(t, w, 3, script)}
			var indexes []string
			for _, p := range all {
				says := strings.Fields(p.Line())
				require.Equal(t, []string{strconv.Itoa(round + 1), "3"}, says[:2])
				indexes = append(indexes, says[2])
			}
			require.ElementsMatch(t, []string{"0", "1", "2"}, indexes)
			for i, p := range all {
				require.NoError(t, p.In.Close())
				if i < 2 {
					zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == i+1 }, "its command has ended")
				}
			}
			for _, p := range all {
				require.Equal(t, 0, p.Exit())
			}
			cmdtest.InBarrier(t, w, 0)
		}
	})
}

func TestCommandsHandTheirResultsToAll(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		const script = `echo result $COORD_INDEX >$COORD_RESULT; echo $COORD_INDEX $COORD_RESULT; cat >/dev/null`
		flags := []string{"--results", "--report", "100ms"}
		one, two := cmdtest.Member(t, w, 2, script, flags...), cmdtest.Member(t, w, 2, script, flags...)
		first, second := strings.Fields(one.Line()), strings.Fields(two.Line())
		require.NoError(t, one.In.Close())
		one.Tells("1 of 2 have not finished: " + second[0])
		require.NoError(t, two.In.Close())
		for _, p := range []*cmdtest.Process{one, two} {
			require.Equal(t, "0\tresult 0", p.Line())
			require.Equal(t, "1\tresult 1", p.Gives(0))
		}
		for _, file := range []string{first[1], second[1]} {
			require.NoFileExists(t, file)
		}
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b"), "--json").Gives(0), `"others":0`,
			"results are the barrier's own")
	})
}

func TestAResultThatIsNoTextIsWholeInJSON(t *testing.T) {
	w := cmdtest.World(t)
	const script = `printf '\377%s' "$COORD_INDEX" >$COORD_RESULT`
	p := cmdtest.Member(t, w, 1, script, "--results", "--json")
	require.Zero(t, p.Exit())
	require.Equal(t, []any{map[string]any{"data_base64": "/zA="}},
		cmdtest.Parse[map[string]any](t, p.Stderr.String())["results"])
}

func TestAResultDoesNotLookLikeAnotherMembers(t *testing.T) {
	w := cmdtest.World(t)
	const script = `case $COORD_INDEX in 0) printf 'mine\n1\tforged\n\n' ;; 1) printf '"quoted' ;; esac >$COORD_RESULT`
	members := make([]*cmdtest.Process, 3)
	for i := range members {
		members[i] = cmdtest.Member(t, w, 3, script, "--results")
	}
	for _, p := range members {
		require.Equal(t, `0`+"\t"+`"mine\n1\tforged\n"`, p.Line())
		require.Equal(t, `1`+"\t"+`"\"quoted"`, p.Gives(0), "the third has none")
	}
}

func TestACommandThatWritesNoResultHasNone(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Member(t, w, 1, "true", "--results", "--json", "--report", "1ms")
	require.Zero(t, p.Exit())
	lines := strings.Split(strings.TrimSpace(p.Stderr.String()), "\n")
	require.Equal(t, []any{nil}, cmdtest.Parse[map[string]any](t, lines[len(lines)-1])["results"])
	require.NotRegexp(t, `have not finished: *("|$)`, p.Stderr.String(), "none")
}

func TestTheFileOfAResultGoesAlsoWhenTheProcessIsKilled(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Mortal(t, w, cmdtest.Round(w, 1, `echo $$ $COORD_RESULT; exec sleep 600`, "--results")...)
	file := strings.Fields(p.Line())[1]
	require.FileExists(t, file)
	p.Signal(syscall.SIGKILL)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	}, "%s is left behind", file)
}

func TestARoundOfCommandsBeginsWithTheLeastNumber(t *testing.T) {
	w := cmdtest.World(t)
	few := cmdtest.Member(t, w, 3, `echo $COORD_MEMBERS`, "--least", "1", "--last-call", "10ms")
	require.Equal(t, "1", few.Gives(0))
}

func TestACommandThatFailsIsMissingToTheOthers(t *testing.T) {
	w := cmdtest.World(t)
	bad := cmdtest.Member(t, w, 3, "exit 7")
	cmdtest.InBarrier(t, w, 1)
	good := []*cmdtest.Process{
		cmdtest.Member(t, w, 3, "exit 0", "--timeout", "30"), cmdtest.Member(t, w, 3, "exit 0", "--json"),
	}
	require.Equal(t, 7, bad.Exit())
	for _, p := range good {
		p.Ends(exitMissing, `1 of 3 members missing: [0]; 0: "its command ended with status 7"`)
	}
	summary, _, _ := strings.Cut(good[1].Stderr.String(), "\n")
	require.Equal(t, map[string]any{"0": "its command ended with status 7"},
		cmdtest.Parse[map[string]any](t, summary)["reasons"])
	cmdtest.InBarrier(t, w, 0)
}

func TestAProcessThatIsKilledInsideTakesItsCommandAlongAndIsMissing(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		victim := cmdtest.Mortal(t, w, cmdtest.Round(w, 2, cmdtest.Stubborn)...)
		other := cmdtest.Member(t, w, 2, "exit 0")
		pid := victim.Number()
		victim.Signal(syscall.SIGKILL)
		cmdtest.RequireGone(t, pid)
		require.Equal(t, exitMissing, other.Exit())
	})
}

func TestALateMemberIsToldSoOrWaitsForTheNextRound(t *testing.T) {
	w := cmdtest.World(t)
	first, second := cmdtest.Member(t, w, 2, cmdtest.UntilEOF), cmdtest.Member(t, w, 2, `echo $$; cat >/dev/null`)
	first.Line()
	second.Line()
	late := cmdtest.Member(t, w, 2, "echo never")
	require.Empty(t, late.Gives(term.ExitBusy))
	require.Contains(t, late.Stderr.String(), "--next")
	next := cmdtest.Member(t, w, 2, "echo $COORD_ROUND", "--next")
	cmdtest.InBarrier(t, w, 3)
	require.NoError(t, first.In.Close())
	require.NoError(t, second.In.Close())
	require.Equal(t, 5, first.Exit())
	require.Equal(t, exitMissing, second.Exit())
	require.Empty(t, next.Lines)
	require.Equal(t, 0, cmdtest.Member(t, w, 2, "exit 0").Exit())
	require.Equal(t, "2", next.Gives(0))
}

func TestADoubleBarriersTimeOutAndSignalsEndTheWaitAndLeaveNothing(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.Member(t, w, 2, "echo never", "--timeout", timeout)
	})
	cmdtest.InBarrier(t, w, 0)
	p := cmdtest.Member(t, w, 2, "echo never")
	cmdtest.InBarrier(t, w, 1)
	p.Signal(syscall.SIGTERM)
	require.Empty(t, p.Gives(128+int(syscall.SIGTERM)))
	cmdtest.InBarrier(t, w, 0)
}

func TestASignalEndsTheWaitForTheOthersToFinish(t *testing.T) {
	w := cmdtest.World(t)
	hasty, other := cmdtest.Member(t, w, 2, "exit 0"), cmdtest.Member(t, w, 2, `echo $$; cat >/dev/null`)
	other.Line()
	zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == 1 }, "one has finished")
	hasty.EndsBy(syscall.SIGINT, 128+int(syscall.SIGINT))
	require.NoError(t, other.In.Close())
	require.Equal(t, exitMissing, other.Exit())
}

// tidies prints its process id, and ends in order by TERM.
const tidies = `trap 'exit 0' TERM; ` + cmdtest.Busy

func TestAPlaceThatIsAskedForIsGivenUpAndMissing(t *testing.T) {
	w := cmdtest.World(t)
	done := cmdtest.Member(t, w, 3, "exit 0")
	cmdtest.InBarrier(t, w, 1)
	asked := cmdtest.Member(t, w, 3, `trap 'exit 9' TERM; `+cmdtest.Busy)
	cmdtest.InBarrier(t, w, 2)
	tidy := cmdtest.Member(t, w, 3, tidies, "--on-revoke", "term")
	asked.Number()
	tidy.Number()
	zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == 1 }, "one has finished")
	require.Equal(t, 3, strings.Count(cmdtest.On(t, w, "revoke", w.Path("b")).Gives(0), "asked"))
	require.Equal(t, 9, asked.Exit(), "nothing was lost, so the command's status counts")
	tidy.Ends(term.ExitLost, "another client asked for the place before the command ended")
	done.Ends(exitMissing, "2 of 3 members missing: [1 2]")
	cmdtest.InBarrier(t, w, 0)
}

func TestAPlaceMayBeKeptThoughItIsAskedFor(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.Member(t, w, 1, `trap 'exit 9' TERM; echo $COORD_NODE; cat >/dev/null`, "--on-revoke", "ignore")
	node := p.Line()
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("b")).Exit())
	data, _, err := w.Admin().Get(node)
	require.NoError(t, err)
	require.True(t, inspect.IsRevocation(data), "%q", data)
	p.LetGo(0)
}

func TestAWaitAtABarrierEndsWhenItIsRemoved(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("jobs/barrier")
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "wait", path).Exit(), "it was never set")
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", path).Exit())
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", path).Exit(), "set twice")
		one, two := cmdtest.On(t, w, "barrier", "wait", path), cmdtest.On(t, w, "--json", "barrier", "wait", path)
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, "barrier", "wait", "--timeout", timeout, path)
		})
		require.False(t, ended(one) || ended(two), "passed a closed barrier")
		require.Equal(t, map[string]any{"path": path, "set": false},
			cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "--json", "barrier", "open", path).Line()))
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "open", path).Exit(), "opened twice")
		require.Equal(t, 0, one.Exit())
		require.Contains(t, cmdtest.Parse[map[string]any](t, two.Line()), "waited")
		require.Equal(t, 0, two.Exit())
	})
}

func TestABarrierWithoutAServerIsUnavailable(t *testing.T) {
	t.Parallel()
	require.Equal(t, term.ExitUnavailable,
		cmdtest.Start(t, "--zk", cmdtest.ClosedPort(t), "--connect-timeout", "0.3", "barrier", "set", "/b").Exit())
	require.Equal(t, term.ExitUnavailable,
		cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "barrier", "wait", "--timeout", "0.3", "/b").Exit())
}

func TestTheDirectoryOfAQueueIsNoBarrier(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	cmdtest.On(t, w, "barrier", "set", w.Path("q")).Ends(term.ExitUsage, "no barrier: it has children")
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("q/entries/barrier")).Exit())
}

func ended(p *cmdtest.Process) bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

func TestWhoClosedABarrierIsWholeInJSON(t *testing.T) {
	w := cmdtest.World(t)
	label := "the nightly " + strings.Repeat("x", 200)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", "--label", label, w.Path("gate")).Exit())
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("gate"))
	require.True(t, strings.HasPrefix(r.Closed.By, label+" "), r.Closed.By)
	for _, text := range []string{text, cmdtest.On(t, w, "ls", w.Path("gate")).Output()} {
		require.Contains(t, text, `"the nightly xxxx`)
		require.NotContains(t, text, label)
		require.Contains(t, text, r.Closed.By[len(r.Closed.By)-8:]+`"`, "shortened in the middle")
	}
}
