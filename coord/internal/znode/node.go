package znode

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Node is one ephemeral node of ours, in one session. Its exported fields are
// set before [Node.Init].
type Node struct {
	Dir string // the server's path of the directory
	// Stem is what the name begins with. It carries a GUID, and a sequence
	// number follows if the create asks for one; or it is Plain.
	Stem string
	// Plain: the stem is the whole name, one that this session may use more
	// than once.
	Plain *Plain
	// Nameless: the stem has no GUID. See [Node.AwaitTurn].
	Nameless bool

	live        atomic.Bool // made, and not known to be gone
	unwatchable atomic.Bool // it was reported that it may not be watched

	host  *Host
	sess  *session.Session
	owner Owner // nil for a node that is not watched
	turn  *turn // that a nameless node has

	// Set by Create, and not changed once it has returned.
	path  string
	czxid int64

	seen  time.Duration                 // when it was last found to be there, in the session's age
	watch atomic.Pointer[session.Watch] // the newest on it
	due   time.Duration                 // when it gets the first one, or 0; see [firsts]

	trouble atomic.Pointer[error] // what the servers answered last to the deletion
}

// Plain is what a node needs whose name is its stem.
type Plain struct {
	Data []byte // distinguishes the nodes of the name
	// Shared: other clients may want the same name. The request that creates
	// the node also sets its data, which makes its version 1.
	Shared bool
	// Proof lists checks that are true only while a shared node is this one.
	Proof []wire.Op
	// Barred returns why no further attempt to make the node may begin, or nil.
	// Barred itself may be nil.
	Barred func() error

	written atomic.Int32 // how often others have written into it, as far as is known
}

// Init prepares a node, which is not to be copied from then on.
func (n *Node) Init(h *Host, s *session.Session, owner Owner) {
	n.host, n.sess, n.owner = h, s, owner
	n.seen = -watchDelay // never
}

// Path returns the server's path of the node, or "" until it is made.
func (n *Node) Path() string { return n.path }

// Session returns the session that the node belongs to.
func (n *Node) Session() *session.Session { return n.sess }

// Name returns the node's name in its directory, or "" until it is made.
func (n *Node) Name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

// Czxid returns the number of the change that created the node, or 0 if the
// reply did not say.
func (n *Node) Czxid() int64 { return n.czxid }

// Join returns the path of a node in a directory.
func Join(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// Made notes that the node was made.
func (n *Node) Made(path string, czxid int64) {
	n.path, n.czxid = path, czxid
	if n.Plain == nil {
		n.Stem = n.Name()[:len(n.Stem)] // one string for both
	}
	n.seen = n.sess.Age()
	n.live.Store(true)
	n.EndTurn()
}

// Forget notes that the node is gone, or another's: any node of its name from
// now on was made late.
func (n *Node) Forget() { n.live.Store(false) }

// Version is the version that a request names to meet only this node: any (-1),
// if no other client can make a node of its name.
func (n *Node) Version() int32 {
	if !n.isShared() {
		return -1
	}
	return 1 + n.Plain.written.Load()
}

// Rewritten reports whether the node is still this one although its version has
// changed, because another client wrote into it, for example a request for it.
// Rewritten takes note of the new version, and fails when ctx or the session
// ends first.
func (n *Node) Rewritten(ctx context.Context) (bool, error) {
	if !n.isShared() {
		return false, nil
	}
	return n.isThere(ctx)
}

func (n *Node) isShared() bool { return n.Plain != nil && n.Plain.Shared }

// isThere reports whether the node of the name is this one, as the server that
// is connected shows it, and takes note of its version.
func (n *Node) isThere(ctx context.Context) (bool, error) {
	node, err := Read(ctx, n.sess, func() (session.Node, error) { return n.sess.Exists(ctx, n.path) })
	if err != nil || !node.Exists || node.Stat.Owner != n.sess.ID() || n.czxid != 0 && n.czxid != node.Stat.Czxid {
		return false, err
	}
	if n.Plain != nil {
		n.Plain.written.Store(node.Stat.Version - 1)
	}
	return true, nil
}

// Delete calls once, or [Node.DeleteOnce] if once is nil, until the node or the
// session is gone. It fails only with [zk.ErrNoAuth].
func (n *Node) Delete(once func() error) error {
	if once == nil {
		once = n.DeleteOnce
	}
	told := false
	err := Send(context.Background(), n.sess, once, func(err error, _ bool) error {
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case n.sess.Err() != nil:
		case IsLost(err):
			if (n.Plain != nil || n.Nameless) && n.hasGone() {
				return nil
			}
		case errors.Is(err, zk.ErrNoAuth):
			n.host.Tell(Stranded, n, err)
			return err
		default:
			n.trouble.Store(&err)
			if !told {
				n.host.Tell(Stranded, n, err)
				told = true
			}
			Pause(context.Background(), n.sess)
		}
		return ErrAgain
	})
	if errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	n.Forget()
	return nil // the servers delete the nodes of a session that is over, if not immediately
}

// LastError returns what the servers answered last to a deletion that is tried
// again, or nil.
func (n *Node) LastError() error {
	if err := n.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// hasGone finds out whether a deletion whose reply was lost was carried out:
// the node of the name may be another's by now, which has the same version.
func (n *Node) hasGone() bool {
	ctx := context.Background() // ends with the session
	for n.sess.Err() == nil {
		if n.sess.Flush(ctx) == nil {
			if there, err := n.isThere(ctx); err == nil {
				return !there
			}
		}
		Pause(ctx, n.sess)
	}
	return true
}

// DeleteOnce sends the deletion once. It fails with [zk.ErrNoNode] if the node
// is gone, even if another client's has its name.
func (n *Node) DeleteOnce() error {
	ctx := context.Background() // ends with the session
	for {
		err := n.deleteProven(ctx)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
		written, err := n.Rewritten(ctx)
		switch {
		case err != nil:
			return err
		case !written:
			return zk.ErrNoNode // another's by now
		}
	}
}

func (n *Node) deleteProven(ctx context.Context) error {
	proof := n.proof()
	if len(proof) == 0 {
		return n.sess.Delete(ctx, n.path, n.Version())
	}
	del := wire.Op{Kind: wire.OpDelete, Path: n.path, Version: n.Version()}
	replies, err := n.sess.Txn(ctx, append(slices.Clone(proof), del))
	switch at := session.Refused(replies); {
	case at < 0 || at == len(proof):
		return err
	case errors.Is(err, zk.ErrNoNode):
		return n.sess.Delete(ctx, n.path, n.Version())
	case errors.Is(err, zk.ErrBadVersion):
		return zk.ErrNoNode // by the proof, the node is another's by now
	}
	return err
}

// proof are the checks that show whose the node is.
func (n *Node) proof() []wire.Op {
	if n.Plain == nil {
		return nil
	}
	return n.Plain.Proof
}
