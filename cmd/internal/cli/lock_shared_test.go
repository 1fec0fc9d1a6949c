//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestSharedLocksHoldTogetherAndExcludePlainOnes(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one := on(t, w, sh(w.Path("l"), untilEOF, "--shared")...)
		two := on(t, w, sh(w.Path("l"), untilEOF, "--shared", "--try")...)
		one.line()
		two.line()
		require.Equal(t, exitBusy, on(t, w, sh(w.Path("l"), "echo never", "--try")...).exit())
		plain := on(t, w, sh(w.Path("l"), untilEOF)...)
		awaitContenders(t, w.Admin(), w.Path("l"), 3)
		require.Equal(t, exitBusy, on(t, w, sh(w.Path("l"), "echo never", "--shared", "--try")...).exit(), "a plain one waits that came earlier")
		late := on(t, w, sh(w.Path("l"), "echo late", "--shared")...)
		awaitContenders(t, w.Admin(), w.Path("l"), 4)
		for _, p := range []*process{one, two} {
			require.NoError(t, p.in.Close())
			require.Equal(t, 5, p.exit())
		}
		plain.line()
		require.Equal(t, exitTimeout, on(t, w, sh(w.Path("l"), "echo never", "--shared", "--timeout", "0.3")...).exit())
		require.NoError(t, plain.in.Close())
		require.Equal(t, 5, plain.exit())
		require.Equal(t, "late", late.line())
		require.Equal(t, 0, late.exit())
		awaitContenders(t, w.Admin(), w.Path("l"), 0)
	})
}

func TestASharedLockHasNoToken(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	inner := sh(w.Path("shared"), `echo $COORD_PATH; echo ${COORD_TOKEN-none}`, "--shared")
	script := `echo ${COORD_TOKEN-none}; exec "$0" "$@"`
	outer := append(append([]string{"lock", w.Path("plain"), "--", "sh", "-c", script}, os.Args[0]), append(target(w), inner...)...)
	p := on(t, w, outer...)
	require.NotEqual(t, "none", p.line())
	require.Equal(t, w.Path("shared"), p.line())
	require.Equal(t, "none", p.line(), "neither one of its own nor that of the lock outside")
	require.Equal(t, 0, p.exit())

	p = on(t, w, append([]string{"--json"}, sh(w.Path("l"), "exit 3", "--shared")...)...)
	require.Equal(t, 3, p.exit())
	story := parse[map[string]any](t, p.stderr.String())
	require.NotContains(t, story, "token")
	require.Contains(t, story["node"], "__READ__")
}

func TestSharedHoldersAreShownAndAskedTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		one, two := on(t, w, sh(w.Path("l"), busy, "--shared")...), on(t, w, sh(w.Path("l"), busy, "--shared")...)
		one.line()
		two.line()
		plain := on(t, w, sh(w.Path("l"), "exit 0")...)
		awaitContenders(t, w.Admin(), w.Path("l"), 3)
		p := on(t, w, "--json", "inspect", w.Path("l"))
		shown := parse[report](t, p.line())
		require.Equal(t, "rwlock", shown.Kind)
		require.Len(t, shown.holders(), 2)
		require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--wait").exit())
		require.Equal(t, 143, one.exit())
		require.Equal(t, 143, two.exit())
		require.Equal(t, 0, plain.exit())
	})
}
