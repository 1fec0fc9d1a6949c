package rwlock

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Downgrade turns a writer's hold into a reader's, without a gap: one
// transaction deletes the write node and creates a read node with the same
// sequence number. There is no moment without a node, no contender gets in
// between, and the place in the line stays the same. The readers that wait
// right behind get their turn, writers do not.
//
// The old hold ends with the call, as released, even if the call fails, and the
// contexts made from it end when Downgrade returns: make new ones from the hold
// returned, which belongs to the same session and has no token. A request to
// give up the old hold ([coord.Hold.Revoked]) is answered by that; the new one
// can be revoked on its own.
//
// It fails with [coord.ErrInvalid], and leaves the hold alone, when the hold is
// not a writer's (a mutex has no read side), while [recipe.Transactor.Release]
// is under way, or when the hold has other handles ([coord.Spec.Reentrant])
// that are not released: their owners would lose their exclusion unawares. With
// any other error nothing is held any more, and nothing is left behind: nodes
// that could not be deleted yet are deleted in the background. When the
// connection fails before the reply comes, Downgrade finds out what happened as
// [recipe.Acquire] does, and tries again if it must. One request, one
// round trip.
func Downgrade(ctx context.Context, h *coord.Hold) (*coord.Hold, error) {
	return recipe.Downgrade(ctx, h)
}
