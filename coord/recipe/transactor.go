package recipe

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/author"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Transactor carries out transactions that must not be carried out twice, also
// when replies are lost. Each one also sets the data of an ephemeral node of
// this client, its witness, at the version it is known to have; a repeat whose
// predecessor took effect finds another version.
//
// The witnesses belong to the client, which has as many in a directory as it
// made transactions there at the same time, at most 32, beyond which they wait
// for each other. One that is idle is deleted after the session timeout, or
// when 128 others are idle that were used since. A Transactor is configuration,
// not state, and safe for concurrent use.
type Transactor struct {
	client *coord.Client
	dir    string
}

// NewTransactor returns a Transactor whose witnesses are in dir. It does no
// I/O.
func NewTransactor(c *coord.Client, dir string) (*Transactor, error) {
	if err := wire.CheckPath(dir); err != nil {
		return nil, &coord.OpError{Op: "check path", Err: err}
	}
	return &Transactor{c, dir}, nil
}

// Txn carries out all the operations or none, once: one request, and one more
// to make a witness when none is idle. It repeats it over lost connections. It
// fails as [coord.Client.Txn] does; [coord.ErrUnconfirmed] is left for these
// cases: ctx ended before a reply came, or the session did, and the witness
// with it, or another client deleted or forbade the witness. Any other error
// means that nothing was, nor will be, carried out, for which a repeat that is
// refused costs one request more. There are no results when the transaction
// took effect and its reply was lost.
func (o *Transactor) Txn(ctx context.Context, ops ...coord.Op) ([]coord.Result, error) {
	return author.Of(o.client).TxnOnce(ctx, o.dir, ops)
}

// Release releases the holds and carries out the operations, all or nothing:
// one request, one round trip, and as for [Transactor.Txn] one more to make a
// witness when none is idle. The holds must be of one session. When it returns
// nil, everything was done while the holds' nodes existed, and the holds have
// ended (as released, unless lost while the reply was under way). When the
// ensemble refused it, the error wraps a [*coord.TxnError] and the holds go on;
// when one of them was lost, the error matches [coord.ErrLost], nothing was
// carried out, and the others go on. If the reply is lost, Release finds out
// the outcome, also when a hold's node is gone by then. When ctx ends before
// that, the error matches [coord.ErrUnconfirmed], and the nodes, if they are
// still there, are deleted in the background. It fails with [coord.ErrInvalid]
// while other handles of a hold ([coord.Spec.Reentrant]) are not released. The
// release of a name waits for transactions of its hold that are under way. When
// ctx ends before anything was sent, the error is ctx's, and the holds go on.
func (o *Transactor) Release(ctx context.Context, holds []*coord.Hold, ops ...coord.Op) error {
	return author.Of(o.client).ReleaseBy(ctx, o.dir, holds, ops)
}
