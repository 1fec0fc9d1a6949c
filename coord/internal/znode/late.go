package znode

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Event is something in the life of a node that is worth a report.
type Event int

// The events.
const (
	Recovered    Event = iota + 1 // a create whose reply was lost had taken effect
	Unsearchable                  // no permission to find out whether the node was made
	Stranded                      // the node cannot be deleted
	Unwatchable                   // no permission to watch the node
	RemovedLate                   // the node was made late, and was deleted
)

// Host is what the nodes of one client have in common.
type Host struct {
	Tell      func(e Event, n *Node, err error)
	IsRequest func(data []byte) bool         // whether data are another client's request for a node
	Others    func(*session.Session) []*Node // of this client, which may have the same name

	firsts firsts

	mu    sync.Mutex
	late  map[*session.Session]*expected
	turns map[stem]*turn // of nameless nodes
}

// expected are the creates of one session that may be carried out late.
type expected struct {
	creates   map[*Node]*late
	searching bool // a goroutine looks for late nodes until no search is due
}

// late is a late create: one that was found not to have been carried out, and
// that may be yet. When a server that was cut off from its leader is back, it
// passes on its clients' old requests, and right behind them the clients'
// attempts to reconnect, which make the leader accept the old requests as the
// session's. So a node may appear that no claim owns, and that all behind it in
// the line wait for. The session has then moved, so its connection ends at the
// next write: whenever the session is connected again, the host looks for such
// nodes.
type late struct {
	idle bool        // no further attempt is under way
	due  bool        // the session must look for it
	over *time.Timer // after which it is not expected any more
}

// lateFor is how many session timeouts after the request a create may still be
// carried out. A server that is cut off keeps requests for its leader until it
// notices, after syncLimit ticks; timeouts are two ticks at least.
const lateFor = 10

// expectLate notes that a create may be carried out late. As long as that is
// so, the session probes.
func (n *Node) expectLate() {
	h := n.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.sess.Err() != nil {
		return
	}
	all := h.late[n.sess]
	if all == nil {
		if h.late == nil {
			h.late = map[*session.Session]*expected{}
		}
		all = &expected{creates: map[*Node]*late{}}
		h.late[n.sess] = all
	}
	if l := all.creates[n]; l != nil {
		l.over.Stop() // one that is too late for that finds another
	} else {
		n.sess.KeepOpen()
	}
	l := &late{}
	l.over = time.AfterFunc(lateFor*n.sess.Timeout(), func() { h.expectNoMore(n, l) })
	all.creates[n] = l
}

// expectNoMore ends what expectLate began, unless that has ended before.
func (h *Host) expectNoMore(n *Node, l *late) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.late[n.sess]
	if all == nil || all.creates[n] != l {
		return
	}
	l.over.Stop()
	delete(all.creates, n)
	if len(all.creates) == 0 {
		delete(h.late, n.sess)
	}
	n.sess.LetClose()
}

// Over forgets the late creates of a session that is over.
func (h *Host) Over(s *session.Session) {
	h.mu.Lock()
	var creates map[*Node]*late
	if all := h.late[s]; all != nil {
		creates = maps.Clone(all.creates)
	}
	h.mu.Unlock()
	for n, l := range creates {
		h.expectNoMore(n, l)
	}
}

// attempted reports that no further attempt to make the node is under way. The
// host looks for nodes that were made late until now.
func (n *Node) attempted() {
	n.EndTurn()
	h := n.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.late[n.sess]; all != nil && all.creates[n] != nil {
		all.creates[n].idle, all.creates[n].due = true, true
		h.search(n.sess, all)
	}
}

// Connected looks for nodes made late in a session that is connected again.
func (h *Host) Connected(s *session.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.late[s]; all != nil {
		for _, l := range all.creates {
			l.due = true
		}
		h.search(s, all)
	}
}

// search looks for the late nodes that are due, in the background; h.mu is
// held.
func (h *Host) search(s *session.Session, all *expected) {
	if all.searching {
		return
	}
	// Refused when the session is over, and the nodes with it.
	all.searching = s.Go(func() {
		for due := h.takeDue(all); len(due) > 0; due = h.takeDue(all) {
			if left := h.removeLate(s, due); len(left) > 0 && s.Err() == nil {
				h.postpone(all, left)
				Pause(context.Background(), s)
			}
		}
	}) == nil
}

// takeDue takes the nodes that are to be looked for. If there are none, the
// search is over.
func (h *Host) takeDue(all *expected) (due []*Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, l := range all.creates {
		if l.due && l.idle { // the creates of the others come to attempted
			l.due, due = false, append(due, n)
		}
	}
	all.searching = len(due) > 0
	return due
}

func (h *Host) postpone(all *expected, left []*Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range left {
		if l := all.creates[n]; l != nil {
			l.due = true
		}
	}
}

// removeLate deletes the late copies of some nodes. It returns those for which
// a request failed but may succeed later.
func (h *Host) removeLate(s *session.Session, due []*Node) (left []*Node) {
	ctx := context.Background() // ends with the session
	if s.Flush(ctx) != nil {
		return due
	}
	listed, swept := map[string][]string{}, map[stem]bool{}
	for _, n := range due {
		if n.Nameless {
			if !swept[n.stem()] && !n.removeStrays(ctx) {
				left = append(left, n)
			}
			swept[n.stem()] = true
			continue
		}
		if _, known := listed[n.Dir]; !known {
			names, err := s.Children(ctx, n.Dir)
			if err != nil && isPassing(err) {
				left = append(left, n)
				continue
			}
			listed[n.Dir] = names
		}
		for _, name := range listed[n.Dir] {
			if n.MayHave(name) && !n.removeIfLate(ctx, name) {
				left = append(left, n)
			}
		}
	}
	return left
}

func isPassing(err error) bool {
	return errors.Is(err, wire.ErrConnection) || errors.Is(err, wire.ErrExpired) || errors.Is(err, wire.ErrThrottled)
}

// removeIfLate deletes a node of the name if no claim owns it. It returns
// false when that must be tried again.
func (n *Node) removeIfLate(ctx context.Context, name string) bool {
	czxid, err := n.lateAs(ctx, name)
	if err != nil || czxid == 0 {
		return err == nil
	}
	stray := &Node{host: n.host, sess: n.sess, path: Join(n.Dir, name), czxid: czxid}
	if n.Plain != nil {
		stray.Plain = &Plain{Shared: n.Plain.Shared, Proof: n.Plain.Proof}
	}
	switch err := stray.DeleteOnce(); {
	case err == nil:
		n.host.Tell(RemovedLate, stray, nil)
	case errors.Is(err, zk.ErrNoNode):
	case errors.Is(err, zk.ErrNoAuth):
		n.host.Tell(Stranded, stray, err)
	default:
		return false
	}
	return true
}

// lateAs returns the czxid of a node of the name that no claim owns, or 0. It
// fails if that cannot be known now.
func (n *Node) lateAs(ctx context.Context, name string) (czxid int64, err error) {
	if n.live.Load() && name == n.Name() {
		return 0, nil
	}
	for {
		node, as, err := n.examine(ctx, name)
		switch {
		case err != nil && isPassing(err):
			return 0, err
		case err != nil || !node.Exists || node.Stat.Owner != n.sess.ID():
			return 0, nil
		case n.Plain != nil && as == another:
			return 0, nil
		case n.Plain == nil, node.Stat.Czxid == czxid:
			return node.Stat.Czxid, nil
		case n.isWanted(as):
			return 0, nil
		}
		// Its claim may have ended while this read was under way. Then the
		// name can be another client's by now: the next read tells.
		czxid = node.Stat.Czxid
	}
}

// isWanted reports whether the node that was found may be that of another claim
// of this session: one with the same name and, unless the data are unknown, the
// same data.
func (n *Node) isWanted(as ownership) bool {
	for _, other := range n.host.Others(n.sess) {
		if other != n && other.Plain != nil && other.Dir == n.Dir && other.Stem == n.Stem &&
			(as == unknown || string(other.Plain.Data) == string(n.Plain.Data)) {
			return true
		}
	}
	return false
}
