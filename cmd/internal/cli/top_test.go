//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTopShowsHowTheLineChangesUntilItIsInterrupted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		top := on(t, w, "--json", "top", "--every", "20ms", w.Path("l"))
		require.Empty(t, parse[report](t, top.line()).Contenders)
		holder := on(t, w, sh(w.Path("l"), untilEOF)...)
		holder.line()
		for len(parse[report](t, top.line()).holders()) == 0 {
		}
		require.NoError(t, holder.in.Close())
		for len(parse[report](t, top.line()).holders()) > 0 {
		}
		top.signal(syscall.SIGINT)
		require.Equal(t, 0, top.exit())
	})
}

func TestTopTellsTheTimeAndTheTable(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	top := on(t, w, "top", w.Path("l"))
	require.Regexp(t, `^\d\d:\d\d:\d\d$`, top.line())
	require.Contains(t, top.line(), "there is nothing")
	top.signal(syscall.SIGTERM)
	require.Equal(t, 0, top.exit())
}

func TestATextIsCutToTheScreen(t *testing.T) {
	require.Equal(t, "äbc…\nabcd\n", fitted("äbcdef\nabcd\n", 4, 10))
	require.Equal(t, 4, strings.Count(fitted(strings.Repeat("x\n", 100), 80, 5), "\n"))
	require.NotPanics(t, func() { fitted("text\nmore", 0, 0) })
}
