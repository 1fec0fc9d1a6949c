//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestSharedLocksHoldTogetherAndExcludePlainOnes(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--shared")...)
		two := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--shared", "--try")...)
		one.Line()
		two.Line()
		require.Equal(t, term.ExitBusy, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--try")...).Exit())
		plain := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 3)
		require.Equal(t, term.ExitBusy, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--shared", "--try")...).Exit(), "a plain one waits that came earlier")
		late := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo late", "--shared")...)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 4)
		for _, p := range []*cmdtest.Process{one, two} {
			require.NoError(t, p.In.Close())
			require.Equal(t, 5, p.Exit())
		}
		plain.Line()
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never", "--shared", "--timeout", timeout)...)
		})
		require.NoError(t, plain.In.Close())
		require.Equal(t, 5, plain.Exit())
		require.Equal(t, "late", late.Line())
		require.Equal(t, 0, late.Exit())
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestASharedLockHasNoToken(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	inner := cmdtest.Sh(w.Path("shared"), `echo $COORD_PATH; echo ${COORD_TOKEN-none}`, "--shared")
	script := `echo ${COORD_TOKEN-none}; exec "$0" "$@"`
	outer := append(append([]string{"lock", w.Path("plain"), "--", "sh", "-c", script}, cmdtest.Coorddemo(t)), append(cmdtest.Target(w), inner...)...)
	p := cmdtest.On(t, w, outer...)
	require.NotEqual(t, "none", p.Line())
	require.Equal(t, w.Path("shared"), p.Line())
	require.Equal(t, "none", p.Line(), "neither one of its own nor that of the lock outside")
	require.Equal(t, 0, p.Exit())

	p = cmdtest.On(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), "exit 3", "--shared")...)...)
	require.Equal(t, 3, p.Exit())
	story := cmdtest.Parse[map[string]any](t, p.Stderr.String())
	require.NotContains(t, story, "token")
	require.Contains(t, story["node"], "__READ__")
}

func TestSharedHoldersAreShownAndAskedTogether(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one, two := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...), cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--shared")...)
		one.Line()
		two.Line()
		plain := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 3)
		p := cmdtest.On(t, w, "--json", "inspect", w.Path("l"))
		shown := cmdtest.Parse[look.Report](t, p.Line())
		require.Equal(t, "rwlock", shown.Kind)
		require.Len(t, shown.Holders(), 2)
		require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait").Exit())
		require.Equal(t, 143, one.Exit())
		require.Equal(t, 143, two.Exit())
		require.Equal(t, 0, plain.Exit())
	})
}
