//go:build linux || darwin || freebsd || openbsd

package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALabelIsUTF8(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "lock", "--label", "caf\xe9", "/l", "--", "true")
	require.Equal(t, term.ExitUsage, p.Exit())
	require.Contains(t, p.Stderr.String(), "UTF-8")
}

func TestTheNameOfACommandThatIsNotUTF8IsNotShown(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	name := filepath.Join(t.TempDir(), "caf\xe9")
	zktest.WriteProgram(t, name, []byte("#!/bin/sh\n"+cmdtest.UntilEOF), 0o700)
	p := cmdtest.On(t, w, "lock", w.Path("l"), "--", name)
	p.Line()
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
	require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "coorddemo "), r.Contenders[0].Owner)
	require.NoError(t, p.In.Close())
	require.Equal(t, 5, p.Exit())
}
