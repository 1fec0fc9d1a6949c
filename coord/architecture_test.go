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
