package election

import (
	"cmp"
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Term is the time for which a candidate leads: a hold with a fencing token. It
// ends when it is resigned or can no longer be trusted; see [coord.Hold] for
// Done, Err, Context, Token, Txn and Revoked.
type Term struct {
	*coord.Hold
	election *Election
	notice   string // where it proclaims, and is asked; see [inspect.Notice]
}

func newTerm(e *Election, h *coord.Hold) *Term {
	return &Term{Hold: h, election: e, notice: inspect.Notice(h.Node())}
}

// Resign ends the term and lets the next candidate lead. It answers as
// [coord.Hold.Release] does: after a nil because the session is over for this
// client, the servers may keep the node, and the next candidate waiting, for up
// to the session time-out more.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Proclaim replaces the leader's data, which [Election.Leader] and
// [Election.Observe] show, and Curator's getLeader; nil stands for the client's
// identity. It succeeds only while the term's node exists: after the term was
// lost, the error matches [coord.ErrLost]. It repeats itself over lost
// connections. A request to step down is not lost: [coord.Hold.Revoked] is
// closed before the data are replaced. In Curator's dialect the data are
// written into the leader's notice ([inspect.Notice]) and not into its node,
// which keeps the data that it campaigned with. One request, as soon as the
// term's nodes are watched, and one more before.
func (t *Term) Proclaim(ctx context.Context, data []byte) error {
	if err := t.election.checkData("proclaim", data); err != nil {
		return err
	}
	c := t.election.client
	if data == nil {
		data = []byte(c.Identity())
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	inside = t.Context(inside)
	err := c.Retry(inside, func(ctx context.Context) error {
		return c.Record(t.notice).Change(ctx, t.Txn, func(before []byte, stat coord.Stat) ([]byte, error) {
			switch lost := t.Err(); {
			case lost != nil:
				return nil, lost
			case stat.Czxid == 0 && t.notice != t.Node():
				return nil, cmp.Or(t.election.post(ctx, t.Hold, data), errPosted)
			case inspect.IsRevocation(before):
				select {
				case <-t.Revoked():
				case <-ctx.Done():
					return nil, coord.Ended(ctx)
				}
			}
			return data, nil
		})
	})
	switch op, wrapped := err.(*coord.OpError); {
	case err == nil, err == errPosted:
		return nil
	case wrapped:
		err = op.Err
	}
	if ctx.Err() == nil {
		err = cmp.Or(t.Err(), err)
	}
	return c.Failure("proclaim", t.Node(), err)
}

// errPosted: the notice, which was deleted by hand, was made again.
var errPosted = errors.New("the notice was made again")
