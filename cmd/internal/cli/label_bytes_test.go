//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALabelIsUTF8(t *testing.T) {
	p := start(t, "lock", "--label", "caf\xe9", "/l", "--", "true")
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, p.stderr.String(), "UTF-8")
}

func TestTheNameOfACommandThatIsNotUTF8IsNotShown(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	name := filepath.Join(t.TempDir(), "caf\xe9")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+untilEOF), 0o700))
	p := on(t, w, "lock", w.Path("l"), "--", name)
	p.line()
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("l")).line())
	require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "coorddemo "), r.Contenders[0].Owner)
	require.NoError(t, p.in.Close())
	require.Equal(t, 5, p.exit())
}
