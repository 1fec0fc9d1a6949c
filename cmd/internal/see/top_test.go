//go:build linux || darwin || freebsd || openbsd

package see

import (
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTopShowsHowTheLineChangesUntilItIsInterrupted(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		top := cmdtest.On(t, w, "--json", "top", "--every", "20ms", w.Path("l"))
		require.Empty(t, cmdtest.Parse[look.Report](t, top.Line()).Contenders)
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
		for len(cmdtest.Parse[look.Report](t, top.Line()).Holders()) == 0 {
		}
		require.NoError(t, holder.In.Close())
		for len(cmdtest.Parse[look.Report](t, top.Line()).Holders()) > 0 {
		}
		top.EndsBy(syscall.SIGINT, 0)
	})
}

func TestTopTellsInJSONWhyItEnds(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"), nil)
	top := cmdtest.On(t, w, "--json", "top", "--every", "20ms", w.Path("l"))
	require.Empty(t, cmdtest.Parse[look.Report](t, top.Line()).Contenders)
	_, err := w.Admin().SetACL(w.Path("l"), zk.DigestACL(zk.PermAll, "someone", "secret"), -1)
	require.NoError(t, err)
	status := top.Exit()
	require.NotZero(t, status)
	require.EqualValues(t, status, cmdtest.Parse[map[string]any](t, top.Last())["status"])
}

func TestTopTellsTheTimeAndTheTable(t *testing.T) {
	w := cmdtest.World(t)
	top := cmdtest.On(t, w, "top", w.Path("l"))
	require.Regexp(t, `^\d\d:\d\d:\d\d$`, top.Line())
	require.Contains(t, top.Line(), "there is nothing")
	top.EndsBy(syscall.SIGTERM, 0)
}

func TestATextIsCutToTheScreen(t *testing.T) {
	t.Parallel()
	require.Equal(t, "äbc…\nabcd\n", fitted("äbcdef\nabcd\n", 4, 10))
	require.Equal(t, 4, strings.Count(fitted(strings.Repeat("x\n", 100), 80, 5), "\n"))
	require.NotPanics(t, func() { fitted("text\nmore", 0, 0) })
}

func TestConnectionsThatBreakHideNoTerm(t *testing.T) {
	w := cmdtest.World(t)
	for range 20 {
		p := cmdtest.On(t, w, "ui", cmdtest.Below(w)).Begun()
		for range 200 {
			p.Signal(syscall.SIGPIPE)
		}
		p.EndsBy(syscall.SIGTERM, 0)
	}
}
