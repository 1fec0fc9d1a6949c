package once

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes the ledger with all its records: its jobs then count as never
// done. It fails with [coord.ErrBusy] while one of them runs: see
// [recipe.Remove].
func (o *Once) Remove(ctx context.Context) error {
	return recipe.Remove(ctx, o.client, recipe.Tree{Root: o.path, Parts: Remains()})
}

// Remains are the parts of a ledger, for recipes that have one.
func Remains() []recipe.Part {
	return []recipe.Part{
		{Nodes: "keys"},
		{Nodes: "keys/*"},
		{Nodes: "keys/*/*"},
		{Nodes: "keys/*/*/record"},
		{Nodes: "keys/*/*/*", Who: "run"},
		{Nodes: "log"},
		{Nodes: "log/*"},
		{Nodes: "log/*/*"},
		{Nodes: "guards"},
		{Nodes: "guards/*"},
	}
}
