//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "version")
	require.Equal(t, 0, p.Exit())
	told := p.Output()
	require.Contains(t, told, "coorddemo")
	require.Equal(t, told, cmdtest.Start(t, "--version").Output())
	p = cmdtest.Start(t, "version", "--json")
	require.Equal(t, 0, p.Exit())
	require.Contains(t, cmdtest.Parse[map[string]string](t, p.Line())["go"], "go1")
}
