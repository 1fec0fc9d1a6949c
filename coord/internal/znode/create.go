package znode

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Create makes nodes of one session by calling once, which sends one request
// that makes all of them or none, and calls [Node.Made] for each. Create blocks
// until the outcome is certain, and begins no further attempt when ctx has
// ended. If the request is refused because a node is missing, ensure is called
// with the refusal, unless it is nil: it makes the directory, or returns the
// error.
func Create(ctx context.Context, once func() error, ensure func(error) error, nodes ...*Node) error {
	defer func() {
		for _, n := range nodes {
			n.attempted()
		}
	}()
	var missing session.Repeats
	return Send(ctx, nodes[0].sess, once, func(err error, lost bool) error {
		if lost {
			if made, failure := found(nodes); made || failure != nil {
				return failure
			}
		}
		switch {
		case IsLost(err) && ctx.Err() != nil:
			return calls.Ended(ctx) // the nodes are not there
		case errors.Is(err, zk.ErrNoNode) && ensure != nil:
			// The directory is missing, or its container was just reaped.
			if err := ensure(err); err != nil && !IsLost(err) && !errors.Is(err, wire.ErrThrottled) {
				return err
			}
			missing.Pause(ctx, nodes[0].sess)
		case !IsLost(err):
			return err
		}
		if plain := nodes[0].Plain; plain != nil && plain.Barred != nil {
			if err := plain.Barred(); err != nil { // which may be a lost connection
				return err
			}
		}
		return ErrAgain
	})
}

// found finds out whether a request whose reply was lost has made the nodes.
// One node that is found stands for all: another that is missing is gone, and
// its watch will report that.
func found(nodes []*Node) (is bool, err error) {
	for _, n := range nodes {
		if is, err = n.recover(); err != nil {
			return false, err
		}
		if !is {
			continue
		}
		for _, other := range nodes {
			if other != n {
				other.Made(Join(other.Dir, other.Stem), n.czxid)
			}
		}
		return true, nil
	}
	return false, nil
}

// recover finds out whether a node was made. After the write before the look,
// this connection's server shows all that the ensemble has carried out. Later
// the ensemble should refuse the old create, because the session has moved to
// another connection, but see late.go.
func (n *Node) recover() (found bool, err error) {
	ctx := context.Background() // ends with the session
	for {
		found, err = Read(ctx, n.sess, func() (bool, error) { return n.find(ctx) })
		switch {
		case err == nil && !found:
			n.expectLate()
			return false, nil
		case err == nil, n.sess.Err() != nil:
			return found, err
		case errors.Is(err, zk.ErrNoAuth):
			n.host.Tell(Unsearchable, n, err)
			return false, err
		}
		Pause(ctx, n.sess)
	}
}

func (n *Node) find(ctx context.Context) (bool, error) {
	if err := n.sess.Flush(ctx); err != nil {
		return false, err
	}
	listing, err := n.sess.Listings.Get(ctx, n.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if n.Nameless {
		found, err := n.adopt(ctx, listing.Names)
		if found {
			n.host.Tell(Recovered, n, nil)
		}
		return found, err
	}
	for _, name := range listing.Names {
		if !n.MayHave(name) {
			continue
		}
		node, as, err := n.examine(ctx, name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		if node.Stat.Owner != n.sess.ID() || as == another {
			continue
		}
		if as == unknown {
			if proven, err := n.proven(ctx); err != nil || !proven {
				return false, err
			}
		}
		n.Made(Join(n.Dir, name), node.Stat.Czxid)
		n.host.Tell(Recovered, n, nil)
		return true, nil
	}
	return false, nil
}

// MayHave reports whether a name in the directory can be the node's.
func (n *Node) MayHave(name string) bool {
	if n.Plain != nil {
		return name == n.Stem
	}
	after, ok := strings.CutPrefix(name, n.Stem)
	return ok && (!n.Nameless || isSequence(after))
}

// ownership is what a node of this name says about who made it.
type ownership int

const (
	another ownership = iota
	unknown           // it cannot be read, or a request has replaced its data
	ours
)

// examine reads a node that has the name, in this session.
func (n *Node) examine(ctx context.Context, name string) (session.Node, ownership, error) {
	path := Join(n.Dir, name)
	node, err := n.sess.Get(ctx, path)
	unreadable := errors.Is(err, zk.ErrNoAuth)
	if unreadable {
		node, err = n.sess.Exists(ctx, path)
	}
	switch {
	case n.Plain == nil:
		return node, ours, err
	case unreadable:
		return node, unknown, err
	case string(node.Data) == string(n.Plain.Data):
		return node, ours, err
	case n.host.IsRequest(node.Data):
		return node, unknown, err
	}
	return node, another, err
}

// proven reports whether the proof holds: that a node of this name and session
// is this one, and not another of the same name.
func (n *Node) proven(ctx context.Context) (bool, error) {
	proof := n.proof()
	if len(proof) == 0 {
		return true, nil
	}
	replies, err := n.sess.Txn(ctx, proof)
	if session.Refused(replies) >= 0 {
		return false, nil
	}
	return err == nil, err
}
