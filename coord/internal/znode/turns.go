package znode

import (
	"context"
	"strings"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// A nameless node has nothing in its name that distinguishes it from others of
// its session. It is known by its ephemeral owner. A session makes one create
// at a time for a stem, so a node of both that belongs to no claim was made
// late, or by a create whose reply was lost. A create that looks for its node
// adopts such a node; the search for late nodes deletes it. Nobody else makes,
// adopts or deletes one while a turn lasts.
type stem struct {
	sess *session.Session
	path string
}

// turn is whose turn it is to make a node of a stem.
type turn struct {
	taken chan struct{} // full while one has the turn
	users int           // that have it or wait for it; guarded by Host.mu
}

// AwaitTurn waits until a nameless node may be made. Its turn ends when it is
// made, or when [Create] returns.
func (n *Node) AwaitTurn(ctx context.Context) (err error) {
	n.turn, err = n.takeTurn(ctx)
	return err
}

// EndTurn ends the turn in which the node is made, unless it has ended.
func (n *Node) EndTurn() {
	t := n.turn
	n.turn = nil
	n.giveBack(t)
}

// takeTurn waits for a turn of the node's stem. It is nil for a node that needs
// none.
func (n *Node) takeTurn(ctx context.Context) (*turn, error) {
	if !n.Nameless {
		return nil, nil
	}
	t := n.host.turnOf(n.stem())
	var err error
	select {
	case t.taken <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		err = calls.Ended(ctx)
	case <-n.sess.Done():
		err = n.sess.Err()
	}
	n.host.leaveTurn(n.stem(), t)
	return nil, err
}

func (n *Node) giveBack(t *turn) {
	if t != nil {
		<-t.taken
		n.host.leaveTurn(n.stem(), t)
	}
}

func (n *Node) stem() stem { return stem{n.sess, Join(n.Dir, n.Stem)} }

func (h *Host) turnOf(s stem) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.turns[s]
	if t == nil {
		if h.turns == nil {
			h.turns = map[stem]*turn{}
		}
		t = &turn{taken: make(chan struct{}, 1)}
		h.turns[s] = t
	}
	t.users++
	return t
}

func (h *Host) leaveTurn(s stem, t *turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.users--
	if t.users == 0 {
		delete(h.turns, s)
	}
}

// strays picks, in the node's turn, the nodes out of a listing that belong to
// its session and to no claim: one read for each that may be one.
func (n *Node) strays(ctx context.Context, names []string) (strays []*Node, err error) {
	known := map[string]bool{}
	for _, other := range n.host.Others(n.sess) {
		if other.live.Load() {
			known[other.path] = true
		}
	}
	for _, name := range names {
		path := Join(n.Dir, name)
		if !n.MayHave(name) || known[path] {
			continue
		}
		node, err := n.sess.Exists(ctx, path)
		if err != nil {
			return nil, err
		}
		if node.Exists && node.Stat.Owner == n.sess.ID() {
			strays = append(strays, &Node{Nameless: true, host: n.host, sess: n.sess, path: path, czxid: node.Stat.Czxid})
		}
	}
	return strays, nil
}

// adopt takes the oldest stray of a listing as this node. It then expects late
// nodes: the stray may have been made late for another claim, and this claim's
// node may come yet.
func (n *Node) adopt(ctx context.Context, names []string) (found bool, err error) {
	strays, err := n.strays(ctx, names)
	if len(strays) == 0 {
		return false, err
	}
	n.expectLate()
	oldest := strays[0]
	for _, s := range strays {
		if strings.Compare(s.path, oldest.path) < 0 {
			oldest = s
		}
	}
	n.Made(oldest.path, oldest.czxid)
	return true, nil
}

// removeStrays deletes the strays, in a turn. It reports whether that was done.
// The turn lasts until they are gone: a node whose deletion was sent may go at
// any time, and must not be adopted.
func (n *Node) removeStrays(ctx context.Context) (done bool) {
	waiting, cancel := context.WithTimeout(ctx, n.sess.Timeout()/10)
	defer cancel()
	t, err := n.takeTurn(waiting) // another turn than the node's, whose create may end at the same time
	if err != nil {
		return false // creates that are under way go first
	}
	defer n.giveBack(t)
	if n.sess.Flush(ctx) != nil {
		return false
	}
	names, err := n.sess.Children(ctx, n.Dir)
	if err != nil {
		return !isPassing(err)
	}
	strays, err := n.strays(ctx, names)
	for _, s := range strays {
		if s.Delete(nil) == nil && n.sess.Err() == nil {
			n.host.Tell(RemovedLate, s, nil)
		}
	}
	return err == nil || !isPassing(err)
}

// isSequence reports whether that is what a server appends to a name: ten
// digits, or after a wrap a minus sign and nine or ten.
func isSequence(text string) bool {
	digits, negative := strings.CutPrefix(text, "-")
	return strings.Trim(digits, "0123456789") == "" && (len(digits) == 10 || negative && len(digits) == 9)
}
