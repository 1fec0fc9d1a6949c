package znode

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Owner is the claim behind a watched node. Its methods must not block: they
// run in the session's goroutines.
type Owner interface {
	Deleted()             // by another client
	Replaced(owner int64) // another node has its name, and belongs to that session
	Written(data []byte)  // which may be a request for the node
	Leaving() bool        // the watch is of no more use
}

// checkRead tells the owner what the read that set a watch has shown: that the
// node is gone, is another's, or has a request for it. Once checkRead has
// returned nil, the node's deletion and requests for it are noticed.
func (n *Node) checkRead(w *session.Watch, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		n.owner.Deleted()
		return err
	case err != nil:
		return err
	case w.Stat.Owner != n.sess.ID() || n.czxid != 0 && n.czxid != w.Stat.Czxid:
		n.owner.Replaced(w.Stat.Owner)
		return zk.ErrNoNode
	}
	n.owner.Written(w.Data)
	if n.watch.Swap(w) != w {
		w.OnFire(n.fired)
	}
	return nil
}

func (n *Node) fired(fired session.Fired) {
	if fired == session.Deleted {
		n.owner.Deleted()
	} else {
		n.Watch()
	}
}

// Watch sets the watch in the background. From then on it is set anew whenever
// it fires.
func (n *Node) Watch() {
	ctx := context.Background()
	_ = n.sess.Enqueue(func() { // fails only when the session is over
		for !n.owner.Leaving() {
			err := n.checkRead(n.sess.Watches.Data(ctx, n.path))
			if err == nil || n.sess.Err() != nil {
				break
			}
			if errors.Is(err, zk.ErrNoAuth) {
				if n.unwatchable.CompareAndSwap(false, true) {
					n.host.Tell(Unwatchable, n, err)
				}
				break
			}
			Pause(ctx, n.sess)
		}
	})
}

// WatchOnce is [Node.Watch], unless the watch was set before. It takes no
// goroutine where another waiter of the session watches the node.
func (n *Node) WatchOnce() {
	if n.watch.Load() != nil || n.owner.Leaving() {
		return
	}
	if w := n.sess.Watches.Adopt(session.Data, n.path); w == nil || n.checkRead(w, nil) != nil {
		n.Watch()
	}
}

// WatchSoon sets the watch if the node lasts for watchDelay.
func (n *Node) WatchSoon() {
	n.host.firsts.add(n, watchDelay)
	if n.owner.Leaving() {
		n.WatchNoMore()
	}
}

// WatchLater puts off what [Node.WatchSoon] does, until the node is seen again
// or for the longer delay.
func (n *Node) WatchLater() { n.host.firsts.move(n, watchLater) }

// WatchSooner undoes WatchLater.
func (n *Node) WatchSooner() { n.host.firsts.move(n, watchDelay) }

// WatchNoMore says that the owner is leaving.
func (n *Node) WatchNoMore() { n.host.firsts.drop(n) }

// Seen notes that the node was found to be there just now.
func (n *Node) Seen() {
	n.seen = n.sess.Age()
	n.WatchSooner()
}

// Known reports whether the node was seen just now, or is watched.
func (n *Node) Known() bool {
	w := n.watch.Load()
	return n.sess.Age()-n.seen < watchDelay || w != nil && w.Fired() == session.Pending
}

// Look reads and watches the node, unless it is known to be there. It fails
// with [zk.ErrNoNode] when it is not.
func (n *Node) Look(ctx context.Context) error {
	for !n.Known() {
		_, err := Read(ctx, n.sess, func() (struct{}, error) {
			return struct{}{}, n.checkRead(n.sess.Watches.Data(ctx, n.path))
		})
		if err != nil && !errors.Is(err, zk.ErrNoAuth) { // without permission, it counts as seen; see Watch
			return err
		}
		n.Seen()
	}
	return nil
}
