//go:build linux || darwin || freebsd || openbsd

package run

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALeaderWhoseCheckFailsEndsItsCommand(t *testing.T) {
	w := cmdtest.World(t)
	path, well := w.Path("e"), filepath.Join(t.TempDir(), "well")
	health := []string{"--health", "test -e " + well, "--health-every", "500ms"}
	mark := func() { require.NoError(t, os.WriteFile(well, nil, 0o600)) }
	mark()
	once := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, health...)...)
	cmd := once.Number()
	require.NoError(t, os.Remove(well))
	once.Ends(term.ExitLost, "not well", "test -e")
	cmdtest.RequireGone(t, cmd)

	cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Elect(path, "echo never", append(health, "--timeout", timeout)...)...)
	})
	mark()
	again := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, append(health, "--again")...)...)
	first := again.Number()
	standby := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF)...).InLine(w, path, 2)
	require.NoError(t, os.Remove(well))
	standby.Begun()
	cmdtest.RequireGone(t, first)
	cmdtest.AwaitContenders(t, w.Admin(), path, 1)
	mark()
	cmdtest.AwaitContenders(t, w.Admin(), path, 2)
	standby.LetGo(5)
	require.NotEqual(t, first, again.Number())
	again.EndsBy(15, 143)
}

func TestTheLeadIsHandedToTheOneWhoIsNamed(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("e")
		one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.Busy, "--data", "one")...).Begun()
		two := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "two")...).InLine(w, path, 2)
		three := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "three")...).InLine(w, path, 3)
		cmdtest.On(t, w, "elect", "--transfer", "nobody", path).Ends(term.ExitFailed, "nobody")
		handed := cmdtest.On(t, w, "elect", "--transfer", "three", path)
		require.Equal(t, 143, one.Exit())
		three.Begun()
		require.Equal(t, "three", handed.Line())
		require.Equal(t, 0, handed.Exit())
		three.LetGo(5)
		two.Begun()
		cmdtest.On(t, w, "elect", "--transfer", "two", path).Ends(0)
		two.LetGo(5)
	})
}

func TestALeaderThatIgnoresTheRequestLeadsOn(t *testing.T) {
	w := cmdtest.World(t)
	path := w.Path("e")
	one := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--on-revoke=ignore")...).Begun()
	two := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "same")...).InLine(w, path, 2)
	three := cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--data", "same", "--priority", "3")...).InLine(w, path, 3)
	cmdtest.On(t, w, "elect", "--transfer", "same", path).Ends(term.ExitFailed, "2 candidates")
	cmdtest.On(t, w, "elect", "--transfer", inLine(t, w, path)[2], "--timeout", "1s", path).Ends(term.ExitTimeout, "leads on")
	one.LetGo(5)
	three.Begun()
	three.LetGo(5)
	two.Begun()
	two.LetGo(5)
}

func TestTheHighestPriorityLeadsNext(t *testing.T) {
	w := cmdtest.World(t)
	path := w.Path("e")
	candidate := func(priority string, n int) *cmdtest.Process {
		return cmdtest.On(t, w, cmdtest.Elect(path, cmdtest.UntilEOF, "--priority", priority)...).InLine(w, path, n)
	}
	one := candidate("0", 1).Begun()
	two, three := candidate("-1", 2), candidate("2", 3)
	one.LetGo(5)
	three.Begun()
	three.LetGo(5)
	two.Begun()
	two.LetGo(5)
}

func TestACommandThatHoldsForTooLongIsEnded(t *testing.T) {
	w := cmdtest.World(t)
	held := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--max-hold", "300ms")...)
	cmd := held.Number()
	held.Ends(143, "for 300ms")
	cmdtest.RequireGone(t, cmd)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--max-hold", "1h")...).Ends(0)
}

func TestAfterAnUncleanEndACommandWaitsForTheDelay(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for range 2 {
			cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 3", "--delay", "1h", "--try")...).Ends(3)
		}
		held := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy, "--delay", "1h")...).Begun()
		require.Equal(t, 0, cmdtest.On(t, w, "break", "--yes", w.Path("l")).Exit())
		held.Ends(term.ExitLost)
		cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--delay", "1h", "--try")...).Ends(term.ExitBusy, "did not release")
		begun := time.Now()
		cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0", "--delay", "100ms")...).Ends(0)
		require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
		cmdtest.On(t, w, "doctor", w.Path("l")).Ends(0)
	})
}

// inLine are the nodes of a line in their order.
func inLine(t *testing.T, w *zktest.World, path string) []string {
	t.Helper()
	names, _, err := w.Admin().Children(path)
	require.NoError(t, err)
	names = cmdtest.ContendersOf(names)
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return names
}
