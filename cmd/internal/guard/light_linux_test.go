package guard_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/guard"
)

// Guard and reaper are two of the three processes of a command that runs, and
// each of them lives as long.
func TestAGuardStartsWithoutWhatOnlyTheVerbsNeed(t *testing.T) {
	t.Parallel()
	initialised := func(arg string) string {
		cmd := exec.Command(filepath.Join(cmdtest.Built(t), "zkcoord"), arg)
		cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
		out, _ := cmd.CombinedOutput() // a guard without orders fails
		return string(out)
	}
	asVerb, asGuard := initialised("version"), initialised(guard.Verb)
	require.Contains(t, asGuard, "no orders")
	for _, pkg := range []string{"net/http", "github.com/alecthomas/kong", "github.com/zkcoord/zkcoord/cmd/internal/cli"} {
		require.Contains(t, asVerb, "init "+pkg+" ")
		require.NotContains(t, asGuard, "init "+pkg+" ")
	}
}
