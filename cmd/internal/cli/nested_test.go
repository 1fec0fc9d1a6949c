//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// nested is a command line of this program that runs the next one, and so on;
// the innermost runs a command of its own.
func nested(w *zktest.World, path string, lines []string, cmd ...string) []string {
	var all []string
	for i, line := range lines {
		if i > 0 {
			all = append(append(all, "--", os.Args[0]), target(w)...)
		}
		all = append(all, strings.Fields(strings.ReplaceAll(line, "PATH", path))...)
	}
	return append(append(all, "--"), cmd...)
}

func TestALockInsideTheSameLockIsRefusedInsteadOfADeadlock(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for i, lines := range [][]string{
		{"lock PATH", "lock PATH"},
		{"lock PATH", "lock PATH/other", "lock PATH"},
		{"lock PATH", "lock --shared PATH"},
		{"lock --shared PATH", "lock PATH"},
		{"lock --slots 1 PATH", "lock --slots 1 PATH"},
		{"lock --slots 2 PATH", "lock --slots 2 PATH", "lock --slots 2 PATH"},
		{"--dialect kazoo lock --slots 1 PATH", "--dialect kazoo lock --slots 1 PATH"},
		{"elect PATH", "elect PATH"},
		{"doublebarrier -n 1 PATH", "doublebarrier --next -n 1 PATH"},
	} {
		path := w.Path(fmt.Sprintf("l%d", i))
		p := on(t, w, nested(w, path, lines, "echo", "ran")...)
		require.Equal(t, exitOwnFault, p.exit(), lines)
		require.NotContains(t, p.output(), "ran", lines)
		require.Contains(t, p.stderr.String(), "this process runs under "+path+" already", lines)
		require.Contains(t, p.stderr.String(), "would wait for itself for ever", lines)
	}
}

func TestALockInsideAnotherIsGranted(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for i, lines := range [][]string{
		{"lock PATH", "lock PATH/other", "lock PATH/third"},
		{"lock --shared PATH", "lock --shared PATH"},
		{"lock --slots 2 PATH", "lock --slots 2 PATH"},
		{"lock PATH", "elect PATH/leader", "queue receive --timeout 20 PATH/queue"},
	} {
		path := w.Path(fmt.Sprintf("l%d", i))
		require.Zero(t, on(t, w, "queue", "put", path+"/queue", "item").exit())
		p := on(t, w, nested(w, path, lines, "sh", "-c", "echo $COORD_HELD")...)
		require.Zero(t, p.exit(), lines)
		require.Len(t, strings.Fields(p.output()), len(lines), "%q: each has told its node", lines)
	}
	busy := on(t, w, nested(w, w.Path("try"), []string{"lock PATH", "lock --try PATH"}, "true")...)
	require.Equal(t, exitBusy, busy.exit(), "a try does not wait")
}

func TestASharedLockInsideItselfIsRefusedWhereAPlainOneWaitsBetween(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	inner := strings.Join(append([]string{os.Args[0]}, append(target(w), "lock", "--shared", w.Path("l"), "--", "true")...), " ")
	outer := on(t, w, sh(w.Path("l"), "echo $$; read line; "+inner, "--shared")...)
	outer.number()
	plain := on(t, w, "lock", w.Path("l"), "--", "true")
	awaitContenders(t, w.Admin(), w.Path("l"), 2)
	_, err := outer.in.Write([]byte("go\n"))
	require.NoError(t, err)
	require.Equal(t, exitOwnFault, outer.exit())
	require.Contains(t, outer.stderr.String(), "would wait for itself for ever")
	require.Zero(t, plain.exit())
}
