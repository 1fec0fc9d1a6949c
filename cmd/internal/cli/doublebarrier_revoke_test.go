//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// tidies tells its process id, and ends in order by TERM.
const tidies = `trap 'exit 0' TERM; ` + busy

func TestAPlaceThatIsAskedForIsGivenUpAndMissing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		done := member(t, w, 3, "exit 0")
		inBarrier(t, w, 1)
		asked := member(t, w, 3, `trap 'exit 9' TERM; `+busy)
		inBarrier(t, w, 2)
		tidy := member(t, w, 3, tidies, "--on-revoke", "term")
		asked.number()
		tidy.number()
		zktest.Eventually(t, soon, func() bool { return marked(t, w) == 1 }, "one has finished")
		revoke := on(t, w, "revoke", w.Path("b"))
		require.Equal(t, 0, revoke.exit())
		require.Equal(t, 3, strings.Count(revoke.output(), "asked"))
		require.Equal(t, 9, asked.exit(), "nothing was lost, so the command's status counts")
		require.Equal(t, exitLost, tidy.exit(), "its part need not be done")
		require.Contains(t, tidy.stderr.String(), "another client asked for the place before the command ended")
		require.Equal(t, exitMissing, done.exit(), "it has finished, and leaves with the others")
		require.Contains(t, done.stderr.String(), "2 of 3 members missing: [1 2]")
		inBarrier(t, w, 0)
	})
}

func TestAPlaceMayBeKeptThoughItIsAskedFor(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := member(t, w, 1, `trap 'exit 9' TERM; echo $COORD_NODE; cat >/dev/null`, "--on-revoke", "ignore")
		node := p.line()
		require.Equal(t, 0, on(t, w, "revoke", w.Path("b")).exit())
		data, _, err := w.Admin().Get(node)
		require.NoError(t, err)
		require.True(t, coord.IsRevocation(data), "%q", data)
		require.NoError(t, p.in.Close())
		require.Equal(t, 0, p.exit())
	})
}
