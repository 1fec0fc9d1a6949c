//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// shared is a command line for a member.
func shared(w *zktest.World, script string, options ...string) []string {
	return append(append([]string{"shards"}, options...), w.Path("shards"), "--", "sh", "-c", script)
}

// untilAsked says which key it has, and ends when it is asked to.
const untilAsked = `trap 'echo "end $COORD_KEY"; exit' TERM; echo "has $COORD_KEY"; test "$COORD_TOKEN" -gt 0 || exit 1; while :; do sleep 0.01; done`

func TestCommandsRunForTheKeysOfAMember(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w, shared(w, untilAsked, "--keys", "a,b", "--id", "one")...)
		require.ElementsMatch(t, []string{"has a", "has b"}, []string{one.Line(), one.Line()})
		table := cmdtest.On(t, w, "shards", w.Path("shards")).Gives(0)
		require.Contains(t, table, "DESIRED")
		require.Equal(t, 4, strings.Count(table, "one"))
		require.Equal(t, 2, strings.Count(table, "owned"))
		cmdtest.On(t, w, shared(w, "true", "--keys", "a,b,c")...).
			Ends(exitConfiguration, "another list of keys", `"c"`, "version 1", "--set")
		two := cmdtest.On(t, w, shared(w, untilAsked, "--id", "two")...)
		moved := strings.TrimPrefix(two.Line(), "has ")
		require.Equal(t, "end "+moved, one.Line())
		require.Contains(t, cmdtest.On(t, w, "shards", "--plan", w.Path("shards")).Gives(0), "no key would move")
		for _, verb := range [][]string{{"shards"}, {"shards", "--plan"}} {
			cmdtest.On(t, w, append(verb, w.Path("typo"))...).Ends(term.ExitAbsent, "there is no node "+w.Path("typo"))
		}
		require.Contains(t, cmdtest.On(t, w, "shards", "--plan", "--without", "one", w.Path("shards")).Gives(0), "two")
		// A planned stop: the other has the key when the command has ended.
		one.Signal(syscall.SIGTERM)
		require.Regexp(t, "^has ", two.Line())
		require.Equal(t, 0, one.Exit())
		two.Signal(syscall.SIGTERM)
		require.Equal(t, 0, two.Exit())
	})
}

func TestACommandThatFailsIsRunAgain(t *testing.T) {
	w := cmdtest.World(t)
	failing := `echo "runs $COORD_KEY"; trap exit TERM; test "$COORD_KEY" = a && exit 7; while :; do sleep 0.01; done`
	one := cmdtest.On(t, w, shared(w, failing, "--keys", "a,b")...)
	runs := map[string]int{}
	for range 4 {
		runs[one.Line()]++
	}
	require.Equal(t, map[string]int{"runs a": 3, "runs b": 1}, runs)
	one.Tells("key failed a, again in 1s: the command of a ended with status 7")
	one.Tells("again in 2s")
	failed := regexp.MustCompile(`a .* failing, \d times, again in \d+s: the command of a ended with status 7`)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		return failed.MatchString(cmdtest.On(t, w, "shards", w.Path("shards")).Gives(0))
	}, "the key is shown as failing")
	one.Signal(syscall.SIGTERM)
	require.Equal(t, 0, one.Exit())
	cmdtest.On(t, w, "shards", w.Path("none")).Ends(term.ExitAbsent, "there is no node")
}

func TestFailFastEndsTheMemberWithItsCommand(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.On(t, w, shared(w, `test "$COORD_KEY" = a && exit 7; exec sleep 100`, "--keys", "a,b", "--fail-fast")...).
		Ends(7, "the command of a")
}

func TestTheListIsChangedWhileMembersRun(t *testing.T) {
	w := cmdtest.World(t)
	one := cmdtest.On(t, w, shared(w, untilAsked, "--keys", "a,b", "--id", "one")...)
	require.ElementsMatch(t, []string{"has a", "has b"}, []string{one.Line(), one.Line()})
	cmdtest.On(t, w, "shards", "--set", "--keys", "b,c", w.Path("shards")).Gives(0)
	require.ElementsMatch(t, []string{"end a", "has c"}, []string{one.Line(), one.Line()})
	old := cmdtest.On(t, w, shared(w, untilAsked, "--keys", "a,b", "--id", "old")...)
	old.Tells("list is newer")
	require.Regexp(t, "has [bc]", old.Line())
	// A deployment brings the next.
	next := cmdtest.On(t, w,
		shared(w, untilAsked, "--keys", "x", "--list-version", "2", "--id", "next", "--weight", "1000")...)
	require.Equal(t, "has x", next.Line())
	for _, m := range []*cmdtest.Process{one, old, next} {
		m.Signal(syscall.SIGTERM)
		require.Equal(t, 0, m.Exit())
	}
}

// The guards end all commands when the process dies.
func TestTheCommandsOfAMemberEndWithIt(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w,
			append([]string{"--session-timeout", "2s"}, shared(w, `echo $$; exec sleep 1000`, "--keys", "a,b,c")...)...)
		var pids []int
		for range 3 {
			var pid int
			_, err := fmt.Sscan(one.Line(), &pid)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		one.Signal(syscall.SIGKILL)
		for _, pid := range pids {
			cmdtest.RequireGone(t, pid)
		}
	})
}

// The shell ends at once; what it has started tidies up.
func TestAKeyMovesWhenNothingOfItsCommandIsLeft(t *testing.T) {
	w, late := cmdtest.World(t), filepath.Join(t.TempDir(), "late")
	drains := `(trap 'sleep 0.5; touch ` + late +
		`; exit' TERM; echo has; while :; do sleep 0.01; done) & trap 'exit 0' TERM; wait`
	one := cmdtest.On(t, w, shared(w, drains, "--keys", "a,b", "--id", "one")...)
	require.Equal(t, []string{"has", "has"}, []string{one.Line(), one.Line()})
	two := cmdtest.On(t, w,
		shared(w, `if test -e `+late+`; then echo alone; else echo beside; fi; exec sleep 1000`, "--id", "two")...)
	require.Equal(t, "alone", two.Line())
	two.Signal(syscall.SIGTERM)
	require.Equal(t, 0, two.Exit())
}

// Its guard, and so the command, is killed; the member lives.
func TestACommandWhoseGuardWasKilledBeginsAnew(t *testing.T) {
	w := cmdtest.World(t)
	one := cmdtest.On(t, w, shared(w, `echo $PPID; exec sleep 1000`, "--keys", "a")...)
	guard := one.Number()
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	require.NotEqual(t, guard, one.Number())
	one.Tells("begins anew")
	one.Signal(syscall.SIGTERM)
	require.Equal(t, 0, one.Exit())
}

// What guards the command is frozen, and cannot end it: the key waits for the
// end of the session.
func TestAKeyWhoseCommandCannotBeEndedDoesNotMove(t *testing.T) {
	w := cmdtest.World(t)
	one := cmdtest.Mortal(t, w,
		shared(w, `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; echo $$; exec sleep 1000`, "--keys", "a",
			"--drain-timeout", "100ms")...)
	guard, reaper, pid := one.Number(), one.Number(), one.Number()
	for _, frozen := range []int{reaper, guard} {
		require.NoError(t, syscall.Kill(frozen, syscall.SIGSTOP))
	}
	t.Cleanup(func() {
		for _, frozen := range []int{guard, reaper, pid} {
			_ = syscall.Kill(frozen, syscall.SIGKILL)
		}
	})
	two := cmdtest.On(t, w, shared(w, `echo has`)...)
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		members, _, err := w.Admin().Children(w.Path("shards/members"))
		return err == nil && len(members) == 2
	}, "both are members")
	one.Signal(syscall.SIGTERM)
	one.Ends(term.ExitLost, "may be running still")
	require.Empty(t, two.Lines, "two commands run for the key")
}
