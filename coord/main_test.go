package coord_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
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

// runInBubble is inBubble as a subtest.
func runInBubble(t *testing.T, name string, f func(b bubble)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, f) })
}

func ptr(spec coord.Spec) *coord.Spec { return &spec }

// acquire acquires the mutex, or what is specified.
func (b bubble) acquire(c *coord.Client, spec ...coord.Spec) *coord.Hold {
	b.Helper()
	return b.Hold(recipe.Acquire(b.Context(), c, &append(spec, mutex)[0], first))
}

// holder returns a client that holds the mutex.
func (b bubble) holder(opts ...coord.Option) (*coord.Client, *coord.Hold) {
	b.Helper()
	c := b.Open(opts...)
	return c, b.acquire(c)
}

// hearing returns a client, and the events of one kind that it tells of.
func (b bubble) hearing(kind string, opts ...coord.Option) (*coord.Client, <-chan event.Event) {
	b.Helper()
	heard := make(chan event.Event, 1000)
	return b.Open(append(opts, coord.WithObserver(func(e event.Event) {
		if e.Kind == kind {
			heard <- e
		}
	}))...), heard
}

// stand has a client hold without a wait.
func (b bubble) stand(c *coord.Client, spec coord.Spec) *coord.Hold {
	b.Helper()
	h, _, err := recipe.Join(b.Context(), c, &spec)
	return b.Hold(h, err)
}

// outcome is what an acquire in the background came to.
type outcome = coordtest.Outcome[*coord.Hold]

// later acquires in the background.
func (b bubble) later(acquire func(context.Context) (*coord.Hold, error)) <-chan outcome {
	return coordtest.Begin(b.Context(), acquire)
}

// acquireLater acquires the mutex in the background. It returns when that
// waits, or is over.
func (b bubble) acquireLater(c *coord.Client) <-chan outcome {
	over := b.later(acquirer(c, mutex, first))
	synctest.Wait()
	return over
}

func acquirer(c *coord.Client, spec coord.Spec, rule coord.Rule) func(context.Context) (*coord.Hold, error) {
	return func(ctx context.Context) (*coord.Hold, error) { return recipe.Acquire(ctx, c, &spec, rule) }
}

// granted waits for the hold that was acquired in the background.
func (b bubble) granted(later <-chan outcome) *coord.Hold {
	b.Helper()
	o := <-later
	return b.Hold(o.Value, o.Err)
}

// nodesOf lists the nodes that belong to a session.
func (b bubble) nodesOf(session int64) (paths []string) {
	for _, node := range b.Server.Nodes() {
		if node.Stat.EphemeralOwner == session {
			paths = append(paths, node.Path)
		}
	}
	return paths
}

// owned counts the nodes of a session.
func (b bubble) owned(session int64) int { return len(b.nodesOf(session)) }

// node returns what the server has at a path, or nil.
func (b bubble) node(path string) *zkembed.Node {
	for _, node := range b.Server.Nodes() {
		if node.Path == path {
			return &node
		}
	}
	return nil
}

func (b bubble) exists(path string) bool { return b.node(path) != nil }

// data returns the data of a node that is there.
func (b bubble) data(path string) string {
	b.Helper()
	node := b.node(path)
	require.NotNil(b, node, path)
	return string(node.Data)
}

// breakUnawares deletes a hold's node; its client does not hear of it yet.
func (b bubble) breakUnawares(h *coord.Hold) {
	b.Helper()
	b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
	require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
	require.NoError(b, h.Err(), "it does not know")
}

// ends waits until another client holds in h's place: h has ended by then.
func (b bubble) ends(h *coord.Hold, why error) (next *coord.Hold) {
	b.Helper()
	next = b.acquire(b.Open())
	require.True(b, ended(h), "two holders")
	require.ErrorIs(b, h.Err(), coord.ErrLost)
	require.ErrorIs(b, h.Err(), why)
	require.Greater(b, next.Token(), h.Token())
	return next
}

func (b bubble) contenders(c *coord.Client, dir string, kinds ...string) []inspect.Contender {
	b.Helper()
	all, err := inspect.Contenders(b.Context(), c, dir, kinds...)
	require.NoError(b, err)
	return all
}

// asked counts the requests of a client during f.
func (b bubble) asked(c *coord.Client, f func()) zkembed.Counts {
	counts := coordtest.Spent(b.Server, c, f)
	delete(counts, zkembed.OpPing)
	return counts
}

func ended(h *coord.Hold) bool { return closed(h.Done()) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
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
	require.Equal(t,
		[]string{"github.com/go-zookeeper/zk", "github.com/hashicorp/errwrap", "github.com/hashicorp/go-multierror"}, modules)
	list := goList(t, dir, "-mod=mod", "-m", "-f", "{{.Path}}", "all")
	require.LessOrEqual(t, len(list), 13, "the build list: %v", list)
}
