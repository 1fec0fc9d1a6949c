package coordtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Outcome is what came of a call in the background.
type Outcome[V any] struct {
	Value V
	Err   error
}

// Begin makes a call in the background.
func Begin[V any](ctx context.Context, call func(context.Context) (V, error)) <-chan Outcome[V] {
	return Go(func() Outcome[V] {
		v, err := call(ctx)
		return Outcome[V]{v, err}
	})
}

// Had returns what a call in the background gets, which must succeed soon; in a
// bubble, at any time.
func Had[V any](t testing.TB, begun <-chan Outcome[V]) V {
	t.Helper()
	within := Soon
	if end, limited := t.Context().Deadline(); limited {
		within = time.Until(end)
	}
	got := zktest.Receive(t, within, begun, "the end of a call")
	require.NoError(t, got.Err)
	return got.Value
}

// Call makes a call that must succeed soon.
func Call[V any](t testing.TB, call func(context.Context) (V, error)) V {
	t.Helper()
	v, err := call(Limited(t))
	require.NoError(t, err)
	return v
}

// Children lists the children of a node.
func Children(t testing.TB, w *zktest.World, path string) []string {
	t.Helper()
	names, _, err := w.Admin().Children(path)
	require.NoError(t, err)
	return names
}

// AwaitChildren returns when a node has n children; a missing one has none.
func AwaitChildren(t testing.TB, w *zktest.World, path string, n int) {
	t.Helper()
	zktest.Eventually(t, Soon, func() bool {
		names, _, _ := w.Admin().Children(path)
		return len(names) == n
	}, "%d nodes in %s", n, path)
}

// Spent returns the requests that a client makes while f runs.
func Spent(server *zkembed.Server, c *coord.Client, f func()) zkembed.Counts {
	before := server.SessionCounts(c.Info().SessionID)
	f()
	return server.SessionCounts(c.Info().SessionID).Since(before)
}

// Cases runs f as a subtest for each of the cases.
func Cases[C any](t *testing.T, cases map[string]C, f func(t *testing.T, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { f(t, c) })
	}
}

// InBubbles runs f in a bubble for each of the cases.
func InBubbles[C any](t *testing.T, cases map[string]C, f func(b Bubble, c C)) {
	t.Helper()
	Cases(t, cases, func(t *testing.T, c C) { InBubble(t, func(b Bubble) { f(b, c) }) })
}
