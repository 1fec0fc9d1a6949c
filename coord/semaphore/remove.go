package semaphore

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes what the semaphore has left behind, its limit with it. It
// fails with [coord.ErrBusy] while anybody has a lease or waits for one: see
// [recipe.Remove].
func (s *Semaphore) Remove(ctx context.Context) error {
	const waiter, lease = "waiter", "lease"
	if s.nodes.Kazoo {
		return recipe.Remove(ctx, s.client,
			recipe.Tree{Root: s.path, Parts: []recipe.Part{{Nodes: "*", Who: lease}}},
			recipe.Tree{Root: s.nodes.Queue.Dir, Parts: []recipe.Part{{Nodes: "*", Who: waiter}}})
	}
	return recipe.Remove(ctx, s.client, recipe.Tree{Root: s.path, Parts: []recipe.Part{
		{Nodes: "limit"},
		{Nodes: "leases"},
		{Nodes: "leases/*", Who: lease},
		{Nodes: "locks"},
		{Nodes: "locks/*", Who: waiter},
	}})
}
