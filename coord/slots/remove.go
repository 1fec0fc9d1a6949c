package slots

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Remove deletes what is left of the numbers that were given. It fails with
// [coord.ErrBusy] while anybody holds a number or waits for one, and while a
// number is kept for its owner ([Durable]), until [Slots.Forget]: see
// [recipe.Remove].
//
// A number that is given after that has the versions of the first. Should a
// server that was cut off carry out the deletion of a former holder's node only
// then (see package coord), the new holder loses the number.
func (s *Slots) Remove(ctx context.Context) error {
	return recipe.Remove(ctx, s.client, recipe.Tree{Root: string(s.nodes), Parts: []recipe.Part{
		{Nodes: "numbers"},
		{Nodes: "numbers/*", Says: keptFor},
		{Nodes: "held"},
		{Nodes: "held/*", Who: "holder"},
		{Nodes: "line"},
		{Nodes: "line/*", Who: "waiter"},
	}})
}

func keptFor(data []byte) (who string) {
	if decode(data).Owner != "" {
		who = "durable owner"
	}
	return who
}
