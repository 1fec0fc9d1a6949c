//go:build linux

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnIncompatibleChangeSinceTheLastTagIsReported(t *testing.T) {
	dir := t.TempDir()
	for _, v := range os.Environ() { // a hook's, of another repository
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "") // which has it back afterwards
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(dir+"/"+name), 0o700))
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	compare := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/apidiff.sh")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-buildvcs=false")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := "git -c user.name=test -c user.email=test@example.com "
	top, err := filepath.Abs("..")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir+"/scripts", 0o700))
	script(t, dir, "cp "+top+"/scripts/apidiff.sh scripts; ln -s "+top+"/tools tools; git init -q .")
	write("go.mod", "module example.com/lib\n\ngo 1.25.0\n")
	write("CHANGELOG.md", "## Unreleased\n\n## 0.1.0\n\n### Changed\n")
	write("lib/lib.go", "package lib\n\nfunc Acquire(path string) error { return nil }\n")
	script(t, dir, "git add -A; "+git+"commit -qm one")
	out, err := compare()
	require.NoError(t, err, out)
	require.Contains(t, out, "no release is tagged")

	script(t, dir, git+"tag v0.1.0")
	write("lib/more.go", "package lib\n\nfunc Release(path string) error { return nil }\n")
	out, err = compare()
	require.NoError(t, err, out)
	require.Contains(t, out, "compatible with v0.1.0")

	write("lib/lib.go", "package lib\n\nfunc Acquire(path string, slots int) error { return nil }\n")
	out, err = compare()
	require.Error(t, err)
	require.Contains(t, out, "Acquire: changed from func(string) error to func(string, int) error")
	require.Contains(t, out, "does not tell of it")

	write("CHANGELOG.md", "## Unreleased\n\n### Changed\n\n- Acquire\n\n## 0.1.0\n")
	out, err = compare()
	require.NoError(t, err, out)
	require.Contains(t, out, "Acquire: changed")
}
