//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestWhoClosedABarrierIsWholeInJSON(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	label := "the nightly " + strings.Repeat("x", 200)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", "--label", label, w.Path("gate")).Exit())
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("gate"))
	require.True(t, strings.HasPrefix(r.Closed.By, label+" "), r.Closed.By)
	for _, text := range []string{text, cmdtest.On(t, w, "ls", w.Path("gate")).Output()} {
		require.Contains(t, text, `"the nightly xxxx`)
		require.NotContains(t, text, label)
		require.Contains(t, text, r.Closed.By[len(r.Closed.By)-8:]+`"`, "shortened in the middle")
	}
}
