package znode

import (
	"context"
	"errors"
	"strings"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Create makes the node by once, and blocks until that is certain, or certain
// not to be. It begins no further attempt when ctx has ended. Where once is a
// create and nothing else, ensure makes the directory when it is missing.
func (n *Node) Create(ctx context.Context, once func() (path string, czxid int64, err error), ensure func() error) error {
	defer n.attempted()
	return Send(ctx, n.sess, func() error {
		path, czxid, err := once()
		if err == nil {
			n.Made(path, czxid)
		}
		return err
	}, func(err error, lost bool) error {
		if lost {
			if found, failure := n.recover(); found || failure != nil {
				return failure
			}
		}
		switch {
		case IsLost(err) && ctx.Err() != nil:
			return session.Ended(ctx) // and the node is not there
		case errors.Is(err, wire.ErrNoNode) && ensure != nil:
			// The directory is missing, or its container was just reaped.
			if err := ensure(); err != nil && !IsLost(err) && !errors.Is(err, wire.ErrThrottled) {
				return err
			}
		case !IsLost(err):
			return err
		}
		if n.Spec.Barred != nil {
			if err := n.Spec.Barred(); err != nil { // which may be a lost connection
				return err
			}
		}
		return ErrAgain
	})
}

// CreateAll makes nodes of one session, whose names are known, by once: one
// transaction, which makes all or none, and returns the number of its change.
// It blocks until that is certain, or certain not to be.
func CreateAll(ctx context.Context, nodes []*Node, once func() (czxid int64, err error)) error {
	made := func(czxid int64) {
		for _, n := range nodes {
			n.Made(Join(n.Spec.Dir, n.Spec.Name), czxid)
		}
	}
	defer func() {
		for _, n := range nodes {
			n.attempted()
		}
	}()
	return Send(ctx, nodes[0].sess, func() error {
		czxid, err := once()
		if err == nil {
			made(czxid)
		}
		return err
	}, func(err error, lost bool) error {
		if lost {
			var czxid int64
			for _, n := range nodes {
				switch found, failure := n.recover(); {
				case failure != nil:
					return failure
				case found:
					czxid = n.czxid
				}
			}
			if czxid != 0 {
				made(czxid) // if one is missing, it is gone, and its watch will tell
				return nil
			}
		}
		switch {
		case !IsLost(err):
			return err
		case ctx.Err() != nil:
			return session.Ended(ctx) // and the nodes are not there
		}
		return ErrAgain
	})
}

// recover finds out what became of a create whose reply was lost. After the
// write before the look this connection's server shows what the ensemble has
// carried out; what it has not by then it should refuse, because the session
// has moved to another connection, but see late.go.
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
		case errors.Is(err, wire.ErrNoAuth):
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
	listing, err := n.sess.Listings.Get(ctx, n.Spec.Dir)
	if errors.Is(err, wire.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, name := range listing.Names {
		if !n.mayHave(name) {
			continue
		}
		node, as, err := n.examine(ctx, name)
		if err != nil && !errors.Is(err, wire.ErrNoNode) {
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
		n.Made(Join(n.Spec.Dir, name), node.Stat.Czxid)
		n.host.Tell(Recovered, n, nil)
		return true, nil
	}
	return false, nil
}

// mayHave reports whether a name in the directory can be the node's.
func (n *Node) mayHave(name string) bool {
	if n.Spec.Plain {
		return name == n.Spec.Name
	}
	return strings.HasPrefix(name, n.Spec.Name)
}

// ownership is how far what a node of the name holds says who made it.
type ownership int

const (
	another ownership = iota
	unknown           // it cannot be read, or was asked for since
	ours
)

// examine reads a node that has the name, in this session.
func (n *Node) examine(ctx context.Context, name string) (session.Node, ownership, error) {
	path := Join(n.Spec.Dir, name)
	node, err := n.sess.Get(ctx, path)
	unreadable := errors.Is(err, wire.ErrNoAuth)
	if unreadable {
		node, err = n.sess.Exists(ctx, path)
	}
	switch {
	case !n.Spec.Plain:
		return node, ours, err
	case unreadable:
		return node, unknown, err
	case string(node.Data) == string(n.Spec.Data):
		return node, ours, err
	case n.host.IsRequest(node.Data):
		return node, unknown, err
	}
	return node, another, err
}

// proven reports whether the proof holds: that a node of this name and session
// is this one, and not another of the same name.
func (n *Node) proven(ctx context.Context) (bool, error) {
	if len(n.Spec.Proof) == 0 {
		return true, nil
	}
	replies, err := n.sess.Txn(ctx, n.Spec.Proof)
	if session.Refused(replies) >= 0 {
		return false, nil
	}
	return err == nil, err
}
