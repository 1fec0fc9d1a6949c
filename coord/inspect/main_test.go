package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

func runInBubble(t *testing.T, name string, f func(b bubble)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, f) })
}

// acquire acquires a lock.
func (b bubble) acquire(c *coord.Client) *coord.Hold {
	b.Helper()
	return b.Hold(recipe.Acquire(b.Context(), c, &coord.Spec{Line: inspect.LockLine("/lock"), Kind: "lock"}, coord.First))
}

// taking claims a name, for one that its data tell.
func (b bubble) taking(c *coord.Client, who string) *coord.Hold {
	b.Helper()
	return b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/names/one", Data: []byte(who)}))
}

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

func (b bubble) data(path string) string {
	b.Helper()
	require.True(b, b.exists(path), path)
	return string(b.node(path).Data)
}

func (b bubble) contenders(c *coord.Client, dir string, kinds ...string) []inspect.Contender {
	b.Helper()
	all, err := inspect.Contenders(b.Context(), c, dir, kinds...)
	require.NoError(b, err)
	return all
}
