//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestConnectionsThatBreakHideNoTerm(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for range 20 {
		p := on(t, w, "ui", below(w))
		p.line()
		for range 200 {
			p.signal(syscall.SIGPIPE)
		}
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.exit())
	}
}
