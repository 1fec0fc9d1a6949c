//go:build linux

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

var unitBlock = regexp.MustCompile("(?ms)^```ini\n# /etc/systemd/system/([\\w.@-]+).*?\n(.*?)^```$")

// The units that the documents show are valid, and a timer finds its service.
func TestTheUnitsInTheDocumentsAreValid(t *testing.T) {
	needsDebian(t)
	dir := t.TempDir()
	var units []string
	documents, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	shown := 0
	for _, doc := range documents {
		text := read(t, doc)
		shown += strings.Count(text, "\n```ini\n")
		for _, unit := range unitBlock.FindAllStringSubmatch(text, -1) {
			// The program that is named has to be there.
			body := strings.ReplaceAll(unit[2], "/usr/bin/zkcoord", "/usr/bin/env")
			require.NoError(t, os.WriteFile(dir+"/"+unit[1], []byte(body), 0o600))
			units = append(units, dir+"/"+unit[1])
		}
	}
	require.Len(t, units, shown, "each begins with the path of its file")
	require.NotEmpty(t, units)
	require.NotContains(t, script(t, dir, "systemd-analyze verify --man=no "+strings.Join(units, " ")), dir)
}

var metricName = regexp.MustCompile(`zkcoord_[a-z_]+`)

// Prometheus' own checker tries each alert, and each metric is one that is
// exported.
func TestTheAlertsAreValidAndFire(t *testing.T) {
	needsDebian(t)
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		promtool = filepath.Join(cache, "zkcoord", "promtool")
		require.FileExists(t, promtool, "make deps fetches it")
	}
	script(t, "../contrib/prom", promtool+" check rules alerts.yml; "+promtool+" test rules alerts_test.yml")

	rules := read(t, "../contrib/prom/alerts.yml")
	program := read(t, "../contrib/prom/prom.go")
	exporter := read(t, "../cmd/internal/see/exporter.go")
	operations := read(t, "../docs/operations.md")
	for _, name := range metricName.FindAllString(rules, -1) {
		if ofPath, ok := strings.CutPrefix(name, "zkcoord_path_"); ok {
			require.Contains(t, exporter, `("`+ofPath+`", "`)
		} else {
			require.Contains(t, program, `"`+name+`"`)
		}
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		require.Contains(t, operations, "| `"+alert[1]+"` |")
	}
	for _, to := range regexp.MustCompile(`runbook: docs/operations.md#(\S+)`).FindAllStringSubmatch(rules, -1) {
		require.Contains(t, strings.ToLower(operations), "### "+strings.ReplaceAll(to[1], "-", " ")+"\n")
	}
}

// In a container the program may be the first process.
func TestTheFirstProcessOfAContainerMayBeTheProgram(t *testing.T) {
	const own = "unshare --user --map-root-user --pid --fork --mount-proc "
	if err := exec.CommandContext(t.Context(), "sh", "-c", own+"true").Run(); err != nil {
		t.Skipf("this machine allows no namespaces: %v", err)
	}
	dir := t.TempDir()
	command(t, "..", []string{"CGO_ENABLED=0"}, "go", "build", "-race=false", "-trimpath", "-buildvcs=false", "-o", dir+"/zkcoord", "./cmd/zkcoord")
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	out := script(t, dir, own+`./zkcoord lock /l -- sh -c 'read -r name < /proc/1/comm; echo "$name"'`, "ZK_SERVERS="+srv.ConnectString())
	require.Equal(t, "zkcoord\n", out)
}
