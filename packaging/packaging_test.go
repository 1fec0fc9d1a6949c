//go:build linux

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// script runs a script of bash in dir, and returns what it wrote.
func script(t *testing.T, dir, text string, env ...string) string {
	t.Helper()
	return command(t, dir, env, "bash", "-euo", "pipefail", "-c", text)
}

func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return string(out)
}

// needsDebian leaves a test out where the tests on real servers are, too: on a
// machine without Debian's packages. In CI it fails there.
func needsDebian(t *testing.T) {
	t.Helper()
	zktest.Require(t, zktest.Real)
}

// A package is the same when it is built again, and is installed, used and
// removed, in a root of its own.
func TestTheDebianPackage(t *testing.T) {
	needsDebian(t)
	dir, again, root := t.TempDir(), t.TempDir(), t.TempDir()
	for _, to := range []string{dir, again} {
		script(t, "..", "scripts/dist.sh deb "+to)
	}
	built, err := filepath.Glob(dir + "/*.deb")
	require.NoError(t, err)
	require.Len(t, built, 1)
	first, err := os.ReadFile(built[0])
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(again, filepath.Base(built[0])))
	require.NoError(t, err)
	require.Equal(t, first, second, "the same commit makes another package")

	script(t, root, "mkdir -p var/lib/dpkg/info var/lib/dpkg/updates; touch var/lib/dpkg/status var/lib/dpkg/available")
	dpkg := "dpkg --force-not-root --root=" + root + " "
	script(t, root, dpkg+"--install "+built[0])
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	zkcoord := root + "/usr/bin/zkcoord"
	require.Regexp(t, `^zkcoord \S+ \(go\S+, commit ([0-9a-f]{40}|unknown)\)`, script(t, root, zkcoord+" version"))
	require.Equal(t, "held\n", script(t, root, zkcoord+" lock /l -- echo held", "ZK_SERVERS="+srv.ConnectString()))
	require.Contains(t, script(t, root, "gunzip <usr/share/man/man1/zkcoord.1.gz"), ".SH COMMANDS")
	script(t, root, dpkg+"--purge zkcoord")
	require.NoDirExists(t, root+"/usr/share/doc/zkcoord")
	require.NoFileExists(t, zkcoord)
}

// The completions are loaded by the shells themselves, and complete verbs,
// flags and the paths of the servers.
func TestShellsComplete(t *testing.T) {
	needsDebian(t)
	dir := t.TempDir()
	command(t, "..", []string{"CGO_ENABLED=0"}, "go", "build", "-buildvcs=false", "-o", dir+"/zkcoord", "./cmd/zkcoord")
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	env := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "ZK_SERVERS=" + srv.ConnectString(), "HOME=" + dir}
	script(t, dir, "zkcoord barrier set /gates/night", env...)
	for shell, complete := range map[string]string{
		"bash": `source <(zkcoord completion bash)
			[[ $(complete -p zkcoord) == *"-C zkcoord zkcoord" ]]; COMP_LINE="$1" COMP_POINT=${#1} zkcoord`,
		"zsh": `autoload -Uz compinit; compinit -D; source <(zkcoord completion zsh); [[ $_comps[zkcoord] == _zkcoord ]]
			compadd() { print -rl -- $found }
			words=(${(s: :)1}); [[ $1 == *' ' ]] && words+=(''); CURRENT=$#words; _zkcoord`,
		"fish": `zkcoord completion fish | source; complete -C "$argv[1]"`,
	} {
		t.Run(shell, func(t *testing.T) {
			_, err := exec.LookPath(shell)
			require.NoError(t, err, "the test needs Debian's package %s (make deps)", shell)
			for line, want := range map[string]string{
				"zkcoord lo": "lock", "zkcoord lock --tim": "--timeout", "zkcoord queue re": "receive", "zkcoord inspect /gates/": "/gates/night",
			} {
				args := []string{"-c", complete, shell, line}
				if shell == "fish" {
					args = []string{"-c", complete, line}
				}
				zktest.Eventually(t, time.Minute, func() bool { // on a busy machine the servers may not answer in time
					out := command(t, dir, env, shell, args...)
					require.NotContains(t, out, "__", "hidden verbs")
					return slices.Contains(strings.Fields(out), want)
				}, "%s: %s", line, want)
			}
		})
	}
}

func TestTheUnitIsValid(t *testing.T) {
	needsDebian(t)
	unit, err := os.ReadFile("zkcoord-elect@.service")
	require.NoError(t, err)
	file := t.TempDir() + "/zkcoord-elect@.service"
	// The program that is named has to be there.
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(unit), "/usr/bin/zkcoord", "/usr/bin/env")), 0o600))
	require.NotContains(t, script(t, ".", "systemd-analyze verify --man=no "+file), "zkcoord-elect")
}
