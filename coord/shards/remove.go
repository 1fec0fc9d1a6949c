package shards

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes the plan, with the list of keys and its version. It fails with
// [coord.ErrBusy] while there is a member, or a key has an owner: see
// [recipe.Remove].
func (s *Shards) Remove(ctx context.Context) error {
	return recipe.Remove(ctx, s.client, recipe.Tree{Root: s.path, Parts: []recipe.Part{
		{Nodes: "plan"},
		{Nodes: "members"},
		{Nodes: "members/*", Who: "member"},
		{Nodes: "keys"},
		{Nodes: "keys/*"},
		{Nodes: "keys/*/*", Who: "key owner"},
	}})
}
