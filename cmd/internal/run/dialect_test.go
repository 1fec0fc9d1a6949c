//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// What stands there is a node of another recipe, which the refusal names.
func TestF64ALockStandsInTheLineOfAnotherRecipeAndSaysHow(t *testing.T) {
	w := cmdtest.World(t)
	for begins, dialect := range map[string]string{
		"": "numbers", "x-72057602234810369-": "zookeeper", "n_": "prefix=n_", "test1_lock_": "name=test1",
	} {
		at, node := w.Path(dialect), begins+"0000000000"
		cmdtest.Contend(t, w, at, map[string]string{node: "another program"})
		lock := func(options ...string) *cmdtest.Process {
			return cmdtest.On(t, w, append(append([]string{"lock", "--try"}, options...), at, "--", "echo", "held")...)
		}
		lock().Ends(term.ExitOwnFault, `"`+dialect+`"`)
		require.Equal(t, term.ExitBusy, lock("--dialect", dialect).Exit())
		lock("--dialect", dialect, "--shared").Ends(term.ExitUsage, "--shared")
		lock("--dialect", dialect, "--slots", "2").Ends(term.ExitUsage, "--slots")
		require.Contains(t, cmdtest.On(t, w, "inspect", at).Gives(0), "--dialect '"+dialect+"'")
		require.NoError(t, w.Admin().Delete(at+"/"+node, -1))
		require.Equal(t, "held", lock("--dialect", dialect).Gives(0))
		require.Equal(t, "led", cmdtest.On(t, w, "elect", "--dialect", dialect, at, "--", "echo", "led").Gives(0))
	}
	cmdtest.On(t, w, "lock", "--dialect", "unheard-of", w.Path("l"), "--", "true").Ends(term.ExitUsage, "prefix=PREFIX")
	cmdtest.On(t, w, "remove", "--dialect", "zookeeper", "--yes", w.Path("l")).Ends(term.ExitUsage, "lock and elect")
}
