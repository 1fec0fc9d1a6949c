//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"path/filepath"
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
		cmdtest.On(t, w, shared(w, "true", "--keys", "a,b,c")...).Ends(exitConfiguration, "another list of keys", `"c"`)
		two := cmdtest.On(t, w, shared(w, untilAsked, "--id", "two")...)
		moved := strings.TrimPrefix(two.Line(), "has ")
		require.Equal(t, "end "+moved, one.Line())
		require.Contains(t, cmdtest.On(t, w, "shards", "--plan", w.Path("shards")).Gives(0), "no key would move")
		require.Contains(t, cmdtest.On(t, w, "shards", "--plan", "--without", "one", w.Path("shards")).Gives(0), "two")
		// A planned stop: the other has the key when the command has ended.
		one.Signal(syscall.SIGTERM)
		require.Regexp(t, "^has ", two.Line())
		require.Equal(t, 0, one.Exit())
		two.Signal(syscall.SIGTERM)
		require.Equal(t, 0, two.Exit())
	})
}

func TestACommandThatFailsEndsItsMember(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Equal(t, 7, cmdtest.On(t, w, shared(w, `test "$COORD_KEY" = a && exit 7; exec sleep 100`, "--keys", "a,b")...).Exit())
		cmdtest.On(t, w, "shards", w.Path("none")).Ends(term.ExitFailed, "there is no plan")
	})
}

// The guards end all commands when the process dies.
func TestTheCommandsOfAMemberEndWithIt(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w, append([]string{"--session-timeout", "2s"}, shared(w, `echo $$; exec sleep 1000`, "--keys", "a,b,c")...)...)
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
	drains := `(trap 'sleep 0.5; touch ` + late + `; exit' TERM; echo has; while :; do sleep 0.01; done) & trap 'exit 0' TERM; wait`
	one := cmdtest.On(t, w, shared(w, drains, "--keys", "a,b", "--id", "one")...)
	require.Equal(t, []string{"has", "has"}, []string{one.Line(), one.Line()})
	two := cmdtest.On(t, w, shared(w, `if test -e `+late+`; then echo alone; else echo beside; fi; exec sleep 1000`, "--id", "two")...)
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
	one := cmdtest.Mortal(t, w, shared(w, `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; echo $$; exec sleep 1000`, "--keys", "a", "--drain-timeout", "100ms")...)
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
