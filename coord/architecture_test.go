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

// Linked are three modules of others. The build list, whose versions a consumer
// cannot go below, has those of the library's own tests too, and none that the
// command and the proofs need.
func TestAConsumerOfOneRecipeGetsFewModules(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("main.go", "package main\n\nimport _ \""+module+"/coord/lock\"\n\nfunc main() {}\n")
	write("go.mod", "module consumer\n\ngo 1.25.0\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n")
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.sum", string(sum))
	modules := goList(t, dir, "-mod=mod", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	slices.Sort(modules)
	modules = slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "consumer" || m == module })
	require.Equal(t, []string{"github.com/go-zookeeper/zk", "github.com/hashicorp/errwrap", "github.com/hashicorp/go-multierror"}, modules)
	list := goList(t, dir, "-mod=mod", "-m", "-f", "{{.Path}}", "all")
	require.LessOrEqual(t, len(list), 13, "the build list: %v", list)
}
