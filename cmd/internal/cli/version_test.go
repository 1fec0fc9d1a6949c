//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	p := start(t, "version")
	require.Equal(t, 0, p.exit())
	told := p.output()
	require.Contains(t, told, "coorddemo")
	require.Equal(t, told, start(t, "--version").output())
	p = start(t, "version", "--json")
	require.Equal(t, 0, p.exit())
	require.Contains(t, parse[map[string]string](t, p.line())["go"], "go1")
}
