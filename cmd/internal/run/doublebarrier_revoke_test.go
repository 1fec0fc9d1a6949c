//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// tidies tells its process id, and ends in order by TERM.
const tidies = `trap 'exit 0' TERM; ` + cmdtest.Busy

func TestAPlaceThatIsAskedForIsGivenUpAndMissing(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		done := cmdtest.Member(t, w, 3, "exit 0")
		cmdtest.InBarrier(t, w, 1)
		asked := cmdtest.Member(t, w, 3, `trap 'exit 9' TERM; `+cmdtest.Busy)
		cmdtest.InBarrier(t, w, 2)
		tidy := cmdtest.Member(t, w, 3, tidies, "--on-revoke", "term")
		asked.Number()
		tidy.Number()
		zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == 1 }, "one has finished")
		revoke := cmdtest.On(t, w, "revoke", w.Path("b"))
		require.Equal(t, 0, revoke.Exit())
		require.Equal(t, 3, strings.Count(revoke.Output(), "asked"))
		require.Equal(t, 9, asked.Exit(), "nothing was lost, so the command's status counts")
		require.Equal(t, term.ExitLost, tidy.Exit(), "its part need not be done")
		require.Contains(t, tidy.Stderr.String(), "another client asked for the place before the command ended")
		require.Equal(t, exitMissing, done.Exit(), "it has finished, and leaves with the others")
		require.Contains(t, done.Stderr.String(), "2 of 3 members missing: [1 2]")
		cmdtest.InBarrier(t, w, 0)
	})
}

func TestAPlaceMayBeKeptThoughItIsAskedFor(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.Member(t, w, 1, `trap 'exit 9' TERM; echo $COORD_NODE; cat >/dev/null`, "--on-revoke", "ignore")
		node := p.Line()
		require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("b")).Exit())
		data, _, err := w.Admin().Get(node)
		require.NoError(t, err)
		require.True(t, inspect.IsRevocation(data), "%q", data)
		require.NoError(t, p.In.Close())
		require.Equal(t, 0, p.Exit())
	})
}
