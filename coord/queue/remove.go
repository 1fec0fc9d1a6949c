package queue

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/queue/internal/dispatch"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes what an empty queue has left behind. It fails with
// [coord.ErrBusy] while there are items, dead letters or consumers, also one
// that has received nothing for less than its session timeout, unless it is
// this client: see [recipe.Remove].
func (q *Queue) Remove(ctx context.Context) error {
	dispatch.Dismiss(ctx, q.at.Nodes)
	dispatch.Dismiss(ctx, q.at.dead().Nodes)
	return recipe.Remove(ctx, q.client,
		recipe.Tree{Root: q.path, Parts: append(remains("", "item"), remains("dead/", "dead letter")...)})
}

// remains are the parts of a queue, or of the queue of its dead letters.
func remains(below, item string) []recipe.Part {
	return []recipe.Part{
		{Nodes: below + "entries"},
		{Nodes: below + "entries/*", Who: item},
		{Nodes: below + "taken"},
		{Nodes: below + "taken/*", Who: "consumer"},
		{Nodes: below + "consumers"},
		{Nodes: below + "consumers/*", Who: "consumer"},
		{Nodes: below + "waiting*"},
		{Nodes: below + "waiting*/*", Who: "idle consumer"},
		{Nodes: below + "producers"},
		{Nodes: below + "producers/*"},
		{Nodes: below + "records"},
		{Nodes: below + "records/*"},
		{Nodes: below + "acknowledged"},
		{Nodes: below + "acknowledged/*"},
		{Nodes: below + "dead"},
	}
}
