package election

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrNoLeader: no candidate stands for election.
var ErrNoLeader = errors.New("no leader")

// Leader is the leading candidate, as its node describes it.
type Leader struct {
	Data    []byte    // what it campaigned with or proclaimed last; see Revoked
	Node    string    // its path; "" if there is none
	Session int64     // the session it belongs to
	Since   time.Time // when it became a candidate, by the server's clock
	Token   int64     // of its term: its node's czxid
	Revoked bool      // it was asked to step down; Data are nil if the request took their place
}

// None reports that there is no leader.
func (l Leader) None() bool { return l.Node == "" }

// Leader returns the leader, or [ErrNoLeader]. The candidate reported was first
// in line, with a node in the ensemble, at some moment since the call: an empty
// write before the read keeps a lagging server from showing the past. A leader
// learns of its election, and of its loss, a little later or earlier than the
// ensemble does: act on the Token, not on the moment. Four requests, three in
// the Kazoo dialect.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	e = &Election{client: e.client.Synced(), line: e.line}
	leader, _, err := e.first(ctx, Leader{}, e.client.Children, func(node string) ([]byte, coord.Stat, error) {
		data, stat, err := e.client.Get(ctx, node)
		if errors.Is(err, coord.ErrNoAuth) {
			err = nil // it leads, though its data may not be read
		}
		return data, stat, err
	})
	if err == nil && leader.None() {
		err = ErrNoLeader
	}
	return leader, recipe.Failure(e.client, "leader", e.line.Dir, err)
}

// first finds the first in line and reads its notice, or where it has none, its
// node. Since no candidate can come to stand before it, it is still the first
// at that moment. A node that is gone by then is not the first any more. The
// constant parts of a term are taken from last, if last is the same term.
// watched reports that the node that was read changes whenever the leader does.
func (e *Election) first(
	ctx context.Context, last Leader,
	list func(context.Context, string) ([]string, error), read func(node string) ([]byte, coord.Stat, error),
) (leader Leader, watched bool, err error) {
	for {
		names, err := list(ctx, e.line.Dir)
		if errors.Is(err, coord.ErrNoNode) {
			err = nil
		}
		line := e.line.Order(names, e.client.Info().Dialect)
		if err != nil || len(line) == 0 || e.waits(line[0], names) {
			return Leader{}, false, err
		}
		node := e.line.Dir + "/" + line[0].Name
		from := inspect.Notice(node)
		watched := slices.Contains(names, path.Base(from))
		if !watched {
			from = node
		}
		data, stat, err := read(from)
		if err == nil && (stat.Czxid == 0 || from != node && node != last.Node) {
			var exists bool
			if stat, exists, err = e.client.Exists(ctx, node); err == nil && !exists {
				err = coord.ErrNoNode
			}
		}
		if errors.Is(err, coord.ErrNoNode) {
			continue
		}
		leader := Leader{inspect.OwnData(data), node, stat.Owner, stat.Created, stat.Czxid, inspect.IsRevocation(data)}
		if from != node && node == last.Node {
			leader.Session, leader.Since, leader.Token = last.Session, last.Since, last.Token
		}
		return leader, watched, err
	}
}

// waits reports whether the first candidate does not lead, since it waits for a
// contender before it that it cannot honour.
func (e *Election) waits(first coord.Contender, names []string) bool {
	return inspect.IsOurs(first) && slices.ContainsFunc(e.line.Foreign(names, e.client.Info().Dialect),
		func(f coord.Contender) bool { return f.Sequence < first.Sequence })
}

// Observe yields the leader immediately, and again at each change of the leader
// or of its data. When no candidate stands for election, it yields a Leader for
// which [Leader.None] is true. It yields the latest state: changes made while
// the loop's body runs may be skipped. Each state was true when it was read,
// and none is older than the one before; while it is cut off from the servers
// it yields nothing. It goes on over lost connections and sessions. Only the
// last pair has an error: ctx has ended, the client was closed, or the servers
// do not permit it.
//
// Two requests at each change of the data, three at each change of the leader:
// only the leader's notice or node is watched. While nobody leads, or a
// LeaderLatch of Curator's does, the directory is watched as well: two requests
// when a candidate comes or goes.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	e, last := &Election{client: e.client.Synced(), line: e.line}, Leader{}
	return recipe.Observe(ctx, e.client, e.line.Dir, func(v *coord.View) (Leader, error) {
		leader, err := e.look(ctx, v, last)
		if leader.Revoked && leader.Data == nil && leader.Node == last.Node {
			leader.Data = last.Data
		}
		last = leader
		return leader, err
	}, Leader.same)
}

func (l Leader) same(other Leader) bool {
	return l.Node == other.Node && l.Revoked == other.Revoked && bytes.Equal(l.Data, other.Data)
}

// look reads who leads, and watches what can change that: the node that was
// read, and where that is not enough, the directory.
func (e *Election) look(ctx context.Context, v *coord.View, last Leader) (Leader, error) {
	leader, watched, err := e.first(ctx, last, e.client.Children, v.Get)
	if err == nil && !watched {
		leader, _, err = e.first(ctx, last,
			func(_ context.Context, dir string) ([]string, error) { return v.ChildrenIfAny(dir) }, v.Get)
	}
	return leader, err
}

// Term is the time for which a candidate leads: a hold with a fencing token. It
// ends when it is resigned or can no longer be trusted; see [coord.Held] for
// Done, Err, Context, Token, Txn and Revoked.
type Term struct {
	coord.Held
	hold     *coord.Hold
	election *Election
	notice   string // where it proclaims, and is asked; see [inspect.Notice]
	data     atomic.Pointer[[]byte]
}

func newTerm(e *Election, h *coord.Hold, data []byte) *Term {
	t := &Term{Held: h, hold: h, election: e, notice: inspect.Notice(h.Node())}
	t.data.Store(&data)
	return t
}

// Leading returns this process's own term as observers see it, and whether
// there is one that can be trusted. It makes no request, and says no before
// another can lead.
func (e *Election) Leading() (Leader, bool) {
	t := e.newest.Load()
	if t == nil || t.Err() != nil {
		return Leader{}, false
	}
	return t.leader(), true
}

// leader describes the term as far as this process knows it.
func (t *Term) leader() Leader {
	return Leader{Data: *t.data.Load(), Node: t.Node(), Session: t.Session(), Token: t.Token()}
}

// Resign ends the term and lets the next candidate lead. It answers as
// [coord.Hold.Release] does: after a nil because the session is over for this
// client, the servers may keep the node, and the next candidate waiting, for up
// to the session timeout more.
func (t *Term) Resign(ctx context.Context) error { return t.hold.Release(ctx) }

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
	if data = bytes.Clone(data); data == nil {
		data = []byte(c.Info().Identity)
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	inside = t.Context(inside)
	err := recipe.Retry(inside, c, func(ctx context.Context) error {
		return recipe.NewRecord(c, t.notice).Change(ctx, t.Txn, func(before []byte, stat coord.Stat) ([]byte, error) {
			switch lost := t.Err(); {
			case lost != nil:
				return nil, lost
			case stat.Czxid == 0 && t.notice != t.Node():
				return nil, cmp.Or(t.election.post(ctx, t.hold, data), errPosted)
			case inspect.IsRevocation(before):
				select {
				case <-t.Revoked():
				case <-ctx.Done():
					return nil, recipe.Ended(ctx)
				}
			}
			return data, nil
		})
	})
	switch op, wrapped := err.(*coord.OpError); {
	case err == nil, err == errPosted:
		t.data.Store(&data)
		return nil
	case wrapped:
		err = op.Err
	}
	if ctx.Err() == nil {
		err = cmp.Or(t.Err(), err)
	}
	return recipe.Failure(c, "proclaim", t.Node(), err)
}

// errPosted: the notice, which was deleted by hand, was made again.
var errPosted = errors.New("the notice was made again")
