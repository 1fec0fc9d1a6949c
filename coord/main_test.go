package coord_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const (
	T    = coordtest.T
	tick = coordtest.Tick
)

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) }, opts...)
}

var mutex = coord.Spec{Line: coord.Line{Dir: "/lock"}, Kind: "lock", Exclusive: true}

func first(ahead []coord.Contender) ([]int, bool) {
	if len(ahead) == 0 {
		return nil, true
	}
	return []int{len(ahead) - 1}, false
}

// acquire acquires the mutex, or what is specified.
func (b bubble) acquire(c *coord.Client, spec ...coord.Spec) *coord.Hold {
	b.Helper()
	h, err := c.Acquire(b.Context(), append(spec, mutex)[0], first)
	require.NoError(b, err)
	return h
}

// owned counts the nodes of a session.
func (b bubble) owned(session int64) (n int) {
	for _, node := range b.Server.Nodes() {
		if node.Stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

func ended(h *coord.Hold) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

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
