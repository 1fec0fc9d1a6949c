//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALockInsideTheSameLockIsRefusedInsteadOfADeadlock(t *testing.T) {
	t.Parallel()
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
		p := cmdtest.On(t, w, cmdtest.Nested(t, w, path, lines, "echo", "ran")...)
		require.Equal(t, term.ExitOwnFault, p.Exit(), lines)
		require.NotContains(t, p.Output(), "ran", lines)
		require.Contains(t, p.Stderr.String(), "this process runs under "+path+" already", lines)
		require.Contains(t, p.Stderr.String(), "would wait for itself for ever", lines)
	}
}

func TestALockInsideAnotherIsGranted(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for i, lines := range [][]string{
		{"lock PATH", "lock PATH/other", "lock PATH/third"},
		{"lock --shared PATH", "lock --shared PATH"},
		{"lock --slots 2 PATH", "lock --slots 2 PATH"},
		{"lock PATH", "elect PATH/leader", "queue receive --timeout 20 PATH/queue"},
	} {
		path := w.Path(fmt.Sprintf("l%d", i))
		require.Zero(t, cmdtest.On(t, w, "queue", "put", path+"/queue", "item").Exit())
		p := cmdtest.On(t, w, cmdtest.Nested(t, w, path, lines, "sh", "-c", "echo $COORD_HELD")...)
		require.Zero(t, p.Exit(), lines)
		require.Len(t, strings.Fields(p.Output()), len(lines), "%q: each has told its node", lines)
	}
	busy := cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path("try"), []string{"lock PATH", "lock --try PATH"}, "true")...)
	require.Equal(t, term.ExitBusy, busy.Exit(), "a try does not wait")
}

func TestASharedLockInsideItselfIsRefusedWhereAPlainOneWaitsBetween(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	inner := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "lock", "--shared", w.Path("l"), "--", "true")...), " ")
	outer := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo $$; read line; "+inner, "--shared")...)
	outer.Number()
	plain := cmdtest.On(t, w, "lock", w.Path("l"), "--", "true")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
	_, err := outer.In.Write([]byte("go\n"))
	require.NoError(t, err)
	require.Equal(t, term.ExitOwnFault, outer.Exit())
	require.Contains(t, outer.Stderr.String(), "would wait for itself for ever")
	require.Zero(t, plain.Exit())
}
