//go:build linux

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/promtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
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

// linked are the files that a document links, but not those elsewhere.
var linked = regexp.MustCompile(`\]\(([^)#:]+)[)#]`)

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
	first := read(t, built[0])
	require.Equal(t, first, read(t, filepath.Join(again, filepath.Base(built[0]))),
		"the same commit makes another package")

	script(t, root, "mkdir -p var/lib/dpkg/info var/lib/dpkg/updates; touch var/lib/dpkg/status var/lib/dpkg/available")
	dpkg := "dpkg --force-not-root --root=" + root + " "
	script(t, root, dpkg+"--install "+built[0])
	srv := coordtest.Embedded(t)
	zkcoord := root + "/usr/bin/zkcoord"
	require.Regexp(t, `^zkcoord \S+ \(go\S+, commit ([0-9a-f]{40}|unknown)\)`, script(t, root, zkcoord+" version"))
	require.Equal(t, "held\n", script(t, root, zkcoord+" lock /l -- echo held", "ZK_SERVERS="+srv.ConnectString()))
	for _, unit := range []string{"zkcoord-attend.service", "zkcoord-attend.socket"} {
		require.Equal(t, read(t, unit), read(t, root+"/usr/lib/systemd/system/"+unit))
	}
	require.Equal(t, read(t, "zkcoord-attend.conf"), read(t, root+"/usr/lib/sysusers.d/zkcoord.conf"))
	require.Contains(t, script(t, root, "gunzip <usr/share/man/man1/zkcoord.1.gz"), ".SH COMMANDS")
	for _, says := range []string{"Homepage: ", "Maintainer: "} {
		require.Contains(t, script(t, root, "dpkg-deb --field "+built[0]), says)
	}
	documents := root + "/usr/share/doc/zkcoord/"
	require.Contains(t, read(t, documents+"copyright"), "License: Apache-2.0")
	require.Contains(t, script(t, root, "gunzip <"+documents+"changelog.gz"), "# Changelog")
	shipped, err := filepath.Glob(documents + "*.md")
	require.NoError(t, err)
	require.NotEmpty(t, shipped)
	for _, document := range shipped {
		for _, link := range linked.FindAllStringSubmatch(read(t, document), -1) {
			require.FileExists(t, documents+link[1], document)
		}
	}
	script(t, root, dpkg+"--purge zkcoord")
	require.NoDirExists(t, root+"/usr/share/doc/zkcoord")
	require.NoFileExists(t, zkcoord)
}

// A folder to install into may be somebody's home, with a clone of the
// repository in it.
func TestInstallingLeavesWhatItDidNotMakeAlone(t *testing.T) {
	home := t.TempDir()
	neighbours := map[string]string{
		"zkcoord/README.md": "a clone", "zkcoord-notes.txt": "notes", "SHA256SUMS": "of somebody else",
		"bin/zkcoord-wrapper": "#!/bin/sh",
	}
	lay(t, home, neighbours)
	for range 2 { // an upgrade, too
		script(t, "..", "make -s install DESTDIR= PREFIX="+home)
	}
	require.Equal(t, neighbours, texts(t, home, neighbours))
	require.Regexp(t, `^zkcoord \S+ `, script(t, home, "bin/zkcoord version"))
}

// A folder of a release has one version, signed, whatever was in it.
func TestAReleaseTakesThePlaceOfOlderOnes(t *testing.T) {
	needsDebian(t)
	dir := t.TempDir()
	neighbours := map[string]string{"zkcoord/README.md": "a clone", "zkcoord-notes.txt": "notes"}
	lay(t, dir, neighbours)
	older := map[string]string{
		"zkcoord-v0-linux-amd64.tar.gz": "", "zkcoord_v0_amd64.deb": "", "zkcoord-v0.cdx.json": "",
		"SHA256SUMS": "0  zkcoord-v0-linux-amd64.tar.gz",
	}
	lay(t, dir, older)
	script(t, "..", "scripts/dist.sh all "+dir+" linux/$(go env GOARCH)")
	require.Equal(t, neighbours, texts(t, dir, neighbours))
	script(t, dir, "sha256sum --check --strict SHA256SUMS")
	signed := script(t, dir, "cut -c67- SHA256SUMS")
	require.Len(t, strings.Fields(signed), 3)
	require.NotContains(t, signed, "v0")
	require.Equal(t, "SHA256SUMS\n"+signed, script(t, dir, "ls -p | grep -v -e / -e notes | LC_ALL=C sort"))
	require.NotContains(t, script(t, dir, "cat *.cdx.json"), "(devel)")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func texts(t *testing.T, dir string, names map[string]string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name := range names {
		found[name] = read(t, filepath.Join(dir, name))
	}
	return found
}

// built returns a folder with the program.
func built(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	command(t, "..", []string{"CGO_ENABLED=0"}, "go", "build", "-race=false", "-trimpath", "-buildvcs=false", "-o",
		dir+"/zkcoord", "./cmd/zkcoord")
	return dir
}

// The completions are loaded by the shells themselves, and complete verbs,
// flags and the paths of the servers.
func TestShellsComplete(t *testing.T) {
	needsDebian(t)
	dir, srv := built(t), coordtest.Embedded(t)
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
				"zkcoord lo": "lock", "zkcoord lock --tim": "--timeout", "zkcoord queue re": "receive",
				"zkcoord inspect /gates/": "/gates/night",
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
			if shell == "fish" {
				paths := command(t, dir, env, shell, "-c", complete, "zkcoord inspect /")
				require.NotContains(t, paths, "/etc", "a local file where a node is meant")
				files := command(t, dir, env, shell, "-c", complete, "zkcoord lock /l -- /et")
				require.Contains(t, files, "/etc", "no local file in CMD")
			}
		})
	}
}

// verified is what systemd says of units.
func verified(t *testing.T, dir string, units map[string]string) string {
	t.Helper()
	var files []string
	for name, text := range units { // the program that is named has to be there
		lay(t, dir, map[string]string{name: strings.ReplaceAll(text, "/usr/bin/zkcoord", "/usr/bin/env")})
		files = append(files, dir+"/"+name)
	}
	return script(t, dir, "systemd-analyze verify --man=no "+strings.Join(files, " "))
}

func TestTheUnitsAreValid(t *testing.T) {
	needsDebian(t)
	dir := t.TempDir()
	units := map[string]string{}
	for _, unit := range []string{"zkcoord-elect@.service", "zkcoord-attend.service", "zkcoord-attend.socket"} {
		units[unit] = read(t, unit)
	}
	require.NotContains(t, verified(t, dir, units), "zkcoord-")
	// Its own measure: 0 is all that systemd can do, 10 nothing. A service that
	// needs the network cannot do without that.
	require.Regexp(t, `Overall exposure level for zkcoord-attend.service: [01]\.\d OK`,
		script(t, dir, "systemd-analyze security --offline=yes --no-pager "+dir+"/zkcoord-attend.service"))
	script(t, ".", "systemd-sysusers --dry-run $PWD/zkcoord-attend.conf")
}

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
	write := func(name, text string) { lay(t, dir, map[string]string{name: text}) }
	compare := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/apidiff.sh")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-buildvcs=false")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := "git -c user.name=test -c user.email=test@example.com "
	top, err := filepath.Abs("..")
	require.NoError(t, err)
	script(t, dir, "mkdir scripts; cp "+top+"/scripts/apidiff.sh scripts; ln -s "+top+"/tools tools; git init -q .")
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

var unitBlock = regexp.MustCompile("(?ms)^```ini\n# /etc/systemd/system/([\\w.@-]+).*?\n(.*?)^```$")

// The units that the documents show are valid, and a timer finds its service.
func TestTheUnitsInTheDocumentsAreValid(t *testing.T) {
	needsDebian(t)
	dir := t.TempDir()
	units := map[string]string{}
	documents, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	shown := 0
	for _, doc := range documents {
		text := read(t, doc)
		shown += strings.Count(text, "\n```ini\n")
		for _, unit := range unitBlock.FindAllStringSubmatch(text, -1) {
			units[unit[1]] = unit[2]
		}
	}
	require.Len(t, units, shown, "each begins with the path of its file")
	require.NotEmpty(t, units)
	require.NotContains(t, verified(t, dir, units), dir)
}

var metricName = regexp.MustCompile(`zkcoord_[a-z_]+`)

// Prometheus' own checker tries each alert, and each metric is one that is
// exported.
func TestTheAlertsAreValidAndFire(t *testing.T) {
	promtool := promtest.Tool(t, "promtool")
	script(t, "../contrib/prom", promtool+" check rules alerts.yml; "+promtool+" test rules alerts_test.yml")

	rules := read(t, "../contrib/prom/alerts.yml")
	others := read(t, "../contrib/prom/prom.go") + read(t, "../cmd/internal/attend/verb.go")
	exporter := read(t, "../cmd/internal/see/exporter.go")
	operations := read(t, "../docs/operations.md")
	for _, name := range metricName.FindAllString(rules, -1) {
		if ofPath, ok := strings.CutPrefix(name, "zkcoord_path_"); ok {
			require.Contains(t, exporter, `("`+ofPath+`", "`)
		} else {
			require.Contains(t, others, `"`+name+`"`)
		}
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		require.Contains(t, operations, "`"+alert[1]+"`")
	}
	for _, to := range regexp.MustCompile(`runbook: docs/operations.md#(\S+)`).FindAllStringSubmatch(rules, -1) {
		require.Contains(t, strings.ToLower(operations), "## "+strings.ReplaceAll(to[1], "-", " ")+"\n")
	}
}

// In a container the program may be the first process.
func TestTheFirstProcessOfAContainerMayBeTheProgram(t *testing.T) {
	const own = "unshare --user --map-root-user --pid --fork --mount-proc "
	if err := exec.CommandContext(t.Context(), "sh", "-c", own+"true").Run(); err != nil {
		t.Skipf("this machine allows no namespaces: %v", err)
	}
	dir, srv := built(t), coordtest.Embedded(t)
	out := script(t, dir, own+`./zkcoord lock /l -- sh -c 'read -r name < /proc/1/comm; echo "$name"'`,
		"ZK_SERVERS="+srv.ConnectString())
	require.Equal(t, "zkcoord\n", out)
}
