package cron

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes the schedule's mark and all records: a schedule that is run at
// the path after that begins anew. It fails with [coord.ErrBusy] while a slot
// runs, or a client that gives a description ([Describe]) is there: see
// [recipe.Remove]. A client without one is not seen while it waits for the next
// slot; it begins the schedule anew.
func (c *Cron) Remove(ctx context.Context) error {
	parts := append(once.Remains(), recipe.Part{Nodes: "mark"}, recipe.Part{Nodes: "runners"},
		recipe.Part{Nodes: "runners/*", Who: "runner"})
	return recipe.Remove(ctx, c.client, recipe.Tree{Root: c.path, Parts: parts})
}
