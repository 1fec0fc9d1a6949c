//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestWhoClosedABarrierIsWholeInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	label := "the nightly " + strings.Repeat("x", 200)
	require.Equal(t, 0, on(t, w, "barrier", "set", "--label", label, w.Path("gate")).exit())
	r, text := seen(t, w, w.Path("gate"))
	require.True(t, strings.HasPrefix(r.Closed.By, label+" "), r.Closed.By)
	for _, text := range []string{text, on(t, w, "ls", w.Path("gate")).output()} {
		require.Contains(t, text, `"the nightly xxxx`)
		require.NotContains(t, text, label)
		require.Contains(t, text, r.Closed.By[len(r.Closed.By)-8:]+`"`, "shortened in the middle")
	}
}
