//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// A completer may start the program, too. Its command lines are what they say.
func TestACommandLineIsCarriedOutWhereAShellCompletes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], append(target(w), "lock", w.Path("l"), "--", "echo", "held")...)
	cmd.Env = []string{"COMP_LINE=zkcoord lo"}
	p := startAs(t, cmd)
	require.Equal(t, "held", p.line())
	require.Equal(t, 0, p.exit())
}
