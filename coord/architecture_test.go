package coord_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/zkcoord/zkcoord"

func goList(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-buildvcs=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// imports returns what each package of the module imports directly.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	text, err := out.Output()
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		all[fields[0]] = fields[1:]
	}
	return all
}

func TestRecipesImportNothingOfTheModuleButCoord(t *testing.T) {
	recipes := 0
	for pkg, direct := range imports(t) {
		if !strings.HasPrefix(pkg, module+"/coord/") || strings.Contains(pkg, "/internal/") {
			continue
		}
		recipes++
		for _, path := range direct {
			if strings.HasPrefix(path, module) {
				require.Equal(t, module+"/coord", path, "%s imports it", pkg)
			}
			require.NotContains(t, path, "go-zookeeper", "%s imports it", pkg)
		}
	}
	require.Positive(t, recipes)
}

func TestTheClientLibraryIsImportedInOnePlaceAndForUse(t *testing.T) {
	allowed := []string{module + "/coord", module + "/coord/internal/session"}
	for pkg, direct := range imports(t) {
		production := strings.HasPrefix(pkg, module+"/coord") || strings.HasPrefix(pkg, module+"/cmd")
		if production && slices.Contains(direct, "github.com/go-zookeeper/zk") {
			require.Contains(t, allowed, pkg)
		}
	}
}

func TestTheEmbeddedServerUsesTheStandardLibraryOnly(t *testing.T) {
	for _, path := range goList(t, ".", "-deps", module+"/zkembed") {
		host, _, _ := strings.Cut(path, "/")
		require.True(t, !strings.Contains(host, ".") || strings.HasPrefix(path, module), "%s", path)
	}
}

func TestAConsumerOfOneRecipeGetsThreeThirdPartyModules(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("main.go", "package main\n\nimport _ \""+module+"/coord/lock\"\n\nfunc main() {}\n")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	// The consumer requires what this module requires, in the same versions.
	own := strings.Replace(string(mod), "module "+module, "module consumer", 1)
	write("go.mod", own+"\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n")
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.sum", string(sum))
	modules := goList(t, dir, "-mod=mod", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	slices.Sort(modules)
	modules = slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "consumer" || m == module })
	require.Equal(t, []string{"github.com/go-zookeeper/zk", "github.com/hashicorp/errwrap", "github.com/hashicorp/go-multierror"}, modules)
}
