//go:build linux || darwin || freebsd || openbsd

package see

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestConnectionsThatBreakHideNoTerm(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	for range 20 {
		p := cmdtest.On(t, w, "ui", cmdtest.Below(w))
		p.Line()
		for range 200 {
			p.Signal(syscall.SIGPIPE)
		}
		p.Signal(syscall.SIGTERM)
		require.Equal(t, 0, p.Exit())
	}
}
