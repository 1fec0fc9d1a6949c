package election

import (
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
	// version is that of the node's data as last set or seen. It is passed on
	// by the channel, which orders proclamations.
	version chan int32
}

func newTerm(e *Election, h *coord.Hold) *Term {
	t := &Term{Hold: h, election: e, notice: inspect.Notice(h.Node()), version: make(chan int32, 1)}
	t.version <- 0
	return t
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
// which keeps the data that it campaigned with. One request.
func (t *Term) Proclaim(ctx context.Context, data []byte) error {
	if err := t.election.checkData("proclaim", data); err != nil {
		return err
	}
	if data == nil {
		data = []byte(t.election.client.Identity())
	}
	var version int32
	select {
	case version = <-t.version:
	case <-ctx.Done():
		return t.election.client.Failure("proclaim", t.Node(), coord.Ended(ctx))
	}
	defer func() { t.version <- version }()
	return t.election.client.Retry(ctx, func(ctx context.Context) error {
		for {
			results, err := t.Txn(ctx, coord.SetOp(t.notice, data, version))
			if op, wrapped := err.(*coord.OpError); wrapped {
				err = &coord.OpError{Op: "proclaim", Path: t.Node(), Err: op.Err}
			}
			if err == nil {
				version = results[0].Stat.Version
				return nil
			}
			if errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrLost) { // the notice was deleted by hand
				version = 0
				return t.election.post(ctx, t.Hold, data)
			}
			if !errors.Is(err, coord.ErrBadVersion) {
				return err
			}
			if version, err = t.heed(ctx); err != nil {
				return err
			}
		}
	})
}

// heed reads what others have written into the node, and returns its version.
func (t *Term) heed(ctx context.Context) (int32, error) {
	data, stat, err := t.election.client.Get(ctx, t.notice)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return 0, err
	}
	if inspect.IsRevocation(data) {
		select {
		case <-t.Revoked():
		case <-t.Done():
		case <-ctx.Done():
			return 0, t.election.client.Failure("proclaim", t.Node(), coord.Ended(ctx))
		}
	}
	return stat.Version, nil
}
