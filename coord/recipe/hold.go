package recipe

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/author"
)

// Attach makes an ephemeral node that is a part of the hold, in its session: it
// is made only while the hold's node exists, a request to give it up is a
// request for the hold, and it is deleted along with the hold's node, however
// the hold ends. No other client must want the same path. data are by default
// the client's identity. It fails with [coord.ErrInvalid] in a turn of a local
// queue and in any other nest ([Dup]). One request.
func Attach(ctx context.Context, h *coord.Hold, path string, data []byte) error {
	return author.Of(h).Attach(ctx, path, data)
}

// Dup returns another handle of the same hold, with a Release of its own; the
// node is deleted when the last handle is released. No request.
//
// With onLast, which may be nil, the new handle begins a nest. The handles made
// inside of it belong to the nest as well, whether by Dup or by a re-entrant
// acquire with the handle's context. When the last of them has ended, and no
// transaction of theirs is under way, onLast is called: by the release or the
// transaction, before that returns, and in a goroutine of its own if the hold
// was lost. So a hold can be handed on from one user to the next. A nest does
// not decide about the node: [Attach], [Transactor.Release] and
// rwlock.Downgrade fail in it with [coord.ErrInvalid].
//
// Dup fails when the hold has ended, also when its trust window is over and
// nothing has noticed yet, and with [coord.ErrInvalid] while
// [Transactor.Release] is under way. It begins no nest, and fails with
// [coord.ErrUnconfirmed], once the outcome of a [coord.Hold.Txn] was unknown,
// or the reply of an [Attach] was lost: that may be carried out later.
func Dup(h *coord.Hold, onLast func()) (*coord.Hold, error) { return author.Of(h).Dup(onLast) }

// OnRelease has the operations carried out together with the deletion of the
// hold's node when the hold is released, all or nothing, and not when it is
// lost. Their effect thus distinguishes a release by the owner from any other
// end. They replace the operations of an earlier call. If the ensemble refuses
// them, the node is deleted without them. [Transactor.Release] has its
// own operations instead, and rwlock.Downgrade drops them. OnRelease fails with
// [coord.ErrInvalid] in a nest ([Dup]). No request.
func OnRelease(h *coord.Hold, ops ...coord.Op) error { return author.Of(h).OnRelease(ops) }

// Invalidate ends the hold and all its handles immediately, as lost:
// [coord.Hold.Err] matches [coord.ErrLost] and the cause. Its node is deleted
// in the background. It is for recipes that bound how long users keep a hold;
// on a hold that has ended it does nothing.
func Invalidate(h *coord.Hold, cause error) { author.Of(h).Invalidate(cause) }

// Downgrade turns an exclusive hold into a shared one, without a gap;
// rwlock.Downgrade, which is made of it, has the promises.
func Downgrade(ctx context.Context, h *coord.Hold) (*coord.Hold, error) {
	return author.Of(h).Downgrade(ctx)
}
