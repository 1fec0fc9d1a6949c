package recipe

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/author"
)

// Acquire joins the line, waits for the turn by rule, and returns the hold.
// When our node is deleted or the session ends while waiting, it joins again,
// at the end of the line. When it returns an error, nothing is left behind:
// nodes that could not be deleted yet are deleted in the background. When ctx
// ends, it returns immediately. ctx bounds the waiting only, not the hold. With
// a ctx that carries a hold of the same line, see [coord.Spec.Reentrant]; a
// claim that would wait for that hold is refused with [coord.ErrInvalid], and
// so is any exclusive claim inside of a shared hold. The spec is left as it is.
func Acquire(ctx context.Context, c *coord.Client, spec *coord.Spec, rule coord.Rule) (*coord.Hold, error) {
	return author.Of(c).Acquire(ctx, spec, rule)
}

// TryAcquire is Acquire without waiting for others: [coord.ErrBusy] unless the
// claim's turn comes without a wait. It looks before it writes: a busy line
// costs one request and no write. While no server can be reached, it waits for
// one until ctx ends.
func TryAcquire(ctx context.Context, c *coord.Client, spec *coord.Spec, rule coord.Rule) (*coord.Hold, error) {
	return author.Of(c).TryAcquire(ctx, spec, rule)
}

// Join is Acquire for a claim whose existence is all that matters, such as a
// member of a group or a lease that is counted: it holds immediately, whoever
// else is there. It returns the names in the directory as they were listed
// along with the create, or right after it, unless the claim is
// [coord.Spec.Unlisted]: a contender that is missing there came later or is
// gone.
func Join(ctx context.Context, c *coord.Client, spec *coord.Spec) (*coord.Hold, []string, error) {
	return author.Of(c).Join(ctx, spec)
}

// AcquireName is Acquire for a claim of a name, which holds as soon as it is
// made. It fails with [coord.ErrNodeExists] when another claim has the name.
// If a session that this client has given up still has the name, AcquireName
// waits until the servers have ended that session. One request; one more where
// the ACL forbids this client to write into its own node; one read where it
// takes a node back ([coord.NameSpec]).
func AcquireName(ctx context.Context, c *coord.Client, spec coord.NameSpec) (*coord.Hold, error) {
	return author.Of(c).AcquireName(ctx, spec)
}

// AcquireNames is [AcquireName] for several names in directories that exist,
// without the wait for a former session: one transaction makes all the claims,
// with the operations of each, or none. All claims belong to one session. If
// the reply is lost, AcquireNames finds out what happened, and repeats the
// transaction if necessary. When the ensemble refused it, the error wraps a
// [*coord.TxnError], whose Index counts two operations for each name, and the
// operations of its With. All the holds are granted at one moment, or none is:
// when one has ended by then, the error matches [coord.ErrLost], or
// [coord.ErrNodeDeleted]; when the session has ended before the outcome was
// known, it matches [coord.ErrSessionExpired], and the call can be made again.
// When AcquireNames returns an error, nothing is left behind: nodes that could
// not be deleted yet are deleted in the background.
func AcquireNames(ctx context.Context, c *coord.Client, specs ...coord.NameSpec) ([]*coord.Hold, error) {
	return author.Of(c).AcquireNames(ctx, specs)
}
