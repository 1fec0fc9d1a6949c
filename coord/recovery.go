package coord

import (
	"context"
	"errors"
	"strings"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// recover finds out what became of a create whose reply was lost. After the
// write before the listing this connection's server shows what the ensemble has
// carried out; what it has not by then it should refuse, because the session has
// moved to another connection, but see [doubt].
func (cl *Claim) recover(name string) (found bool, err error) {
	for {
		found, err = cl.find(name)
		if errors.Is(err, ErrNoAuth) {
			cl.client.opts.log.Error("may not find out whether an own node was made; if so, it stays until the session ends",
				"dir", cl.spec.Line.Dir, "name begins with", name, "session", sessionName(cl.sess.ID()), "err", err)
			cl.client.emit(Event{Kind: NodeStranded, Session: cl.sess.ID(), Path: join(cl.spec.Line.Dir, name), Err: err})
		}
		if err == nil && !found {
			cl.doubts(name)
		}
		if err == nil || errors.Is(err, ErrNoAuth) || cl.sess.Err() != nil {
			return found, err
		}
		if !errors.Is(err, ErrDisconnected) {
			cl.client.pause(context.Background())
		}
	}
}

func (cl *Claim) find(prefix string) (bool, error) {
	ctx := context.Background() // ends with the session
	if err := cl.sess.Flush(ctx); err != nil {
		return false, err
	}
	listing, err := cl.sess.List(ctx, cl.dir)
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, name := range listing.Names {
		if !cl.isOwn(name, prefix) {
			continue
		}
		node, as, err := cl.examine(ctx, name)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return false, err
		}
		if node.Stat.Owner != cl.sess.ID() || as == anothers {
			continue
		}
		if as == perhaps {
			if proven, err := cl.proven(ctx); err != nil || !proven {
				return false, err
			}
		}
		cl.setNode(join(cl.dir, name), node.Stat.Czxid)
		cl.client.emit(Event{Kind: ClaimRecovered, Session: cl.sess.ID(), Path: cl.Node()})
		return true, nil
	}
	return false, nil
}

// likeness is how far what a node holds tells that the claim has made it.
type likeness int

const (
	anothers likeness = iota
	perhaps           // it cannot be read, or was asked for since
	asMade
)

// examine reads a node of the claim's name in this session.
func (cl *Claim) examine(ctx context.Context, name string) (session.Node, likeness, error) {
	path := join(cl.dir, name)
	node, err := cl.sess.Get(ctx, path)
	unreadable := errors.Is(err, ErrNoAuth)
	if unreadable {
		node, err = cl.sess.Exists(ctx, path)
	}
	switch {
	case cl.spec.Name == "":
		return node, asMade, err
	case unreadable:
		return node, perhaps, err
	case string(node.Data) == string(cl.spec.Data):
		return node, asMade, err
	case IsRevocation(node.Data):
		return node, perhaps, err
	}
	return node, anothers, err
}

// proven tells whether what proves the claim holds: that a node of its name and
// session is its own, and not another claim's ([Spec.Proof]).
func (cl *Claim) proven(ctx context.Context) (bool, error) {
	if len(cl.spec.Proof) == 0 {
		return true, nil
	}
	_, err := cl.client.txn(ctx, cl.sess, cl.spec.Proof)
	var refused *TxnError
	if errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

func (cl *Claim) isOwn(name, prefix string) bool {
	if cl.spec.Name != "" {
		return name == prefix
	}
	return strings.HasPrefix(name, prefix)
}
