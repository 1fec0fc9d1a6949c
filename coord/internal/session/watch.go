package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Fired tells what used a watch up.
type Fired int

// Stale: the connection was lost, so nothing is known. Changed: the data, or
// the list of children, changed. Deleted: the node is gone.
const (
	Stale Fired = iota
	Changed
	Deleted
)

// Watch is a node as it was read, with the one-shot watch that the reading
// left. All who watch the same path share it.
type Watch struct {
	Data     []byte
	Children []string
	Stat     Stat

	ready chan struct{} // closed when the fields above, or err, are set
	err   error
	done  chan struct{} // closed when the watch fired
	fired Fired         // set before done is closed
	hooks []func(Fired) // guarded by Session.mu; nil once fired
	spent bool          // guarded by Session.mu
}

// Done is closed when the watch fires.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Fired tells what fired the watch. Call it after Done is closed.
func (w *Watch) Fired() Fired { return w.fired }

// WatchData reads a node and watches it: one request, or none when somebody
// watches it already. A missing node answers [ErrNoNode] and leaves no watch.
// A node whose data may not be read is watched without its data, by the changes
// of its parent's children.
func (s *Session) WatchData(ctx context.Context, path string) (*Watch, error) {
	return s.watch(ctx, armed{path, false})
}

// WatchChildren lists a node's children and watches the list.
func (s *Session) WatchChildren(ctx context.Context, path string) (*Watch, error) {
	return s.watch(ctx, armed{path, true})
}

func (s *Session) watch(ctx context.Context, key armed) (*Watch, error) {
	return s.await(ctx, key, s.join(key))
}

// Watched is a watch, or why there is none.
type Watched struct {
	*Watch
	Err error
}

// WatchAll is [Session.WatchData] for several nodes, in one round trip.
func (s *Session) WatchAll(ctx context.Context, paths ...string) []Watched {
	joined, all := make([]attempt, len(paths)), make([]Watched, len(paths))
	for i, path := range paths {
		joined[i] = s.join(armed{path, false})
	}
	for i, path := range paths {
		all[i].Watch, all[i].Err = s.await(ctx, armed{path, false}, joined[i])
	}
	return all
}

// attempt is a watch that there is, or that is being set.
type attempt struct {
	watch  *Watch
	shared bool
	err    error
}

// join returns the watch that there is, or begins to set one.
func (s *Session) join(key armed) attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, shared := s.watches[key]; shared {
		return attempt{w, true, nil}
	}
	w := &Watch{ready: make(chan struct{}), done: make(chan struct{})}
	arm := func() { s.arm(key, w) }
	var err error
	if key.children { // what may not be read is watched by them: see armBlind
		err = s.begin(arm)
	} else {
		err = s.enqueue(&s.arming, arm)
	}
	if err == nil {
		s.watches[key] = w
	}
	return attempt{w, false, err}
}

// await waits until the watch is set. One that was begun by others and failed may
// be older than the call. There is no watch then to tell what has happened
// since: the node may be there by now. Whichever join finds next was begun after
// that failure, and so after the call.
func (s *Session) await(ctx context.Context, key armed, a attempt) (*Watch, error) {
	if a.err != nil {
		return nil, a.err
	}
	select {
	case <-a.watch.ready:
		if a.watch.err != nil && a.shared {
			again := s.join(key)
			again.shared = false
			return s.await(ctx, key, again)
		}
		return a.watch, a.watch.err
	case <-ctx.Done():
		return nil, Ended(ctx)
	case <-s.ending.Done():
		return nil, s.Err()
	}
}

// arm sets the watch. It is not bound to the context of whoever asked first,
// since others may wait for the same watch by now.
func (s *Session) arm(key armed, w *Watch) {
	defer close(w.ready)
	if w.err = s.awaitUp(context.Background()); w.err == nil {
		w.err = s.translate(s.read(key, w))
	}
	if errors.Is(w.err, ErrNoAuth) && !key.children {
		w.err = s.armBlind(key, w)
	}
	if w.err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[key] == w {
		delete(s.watches, key)
	}
}

func (s *Session) read(key armed, w *Watch) error {
	if key.children {
		names, stat, _, err := s.conn.ChildrenW(key.path)
		if err == nil {
			w.Children, w.Stat = names, statOf(stat)
		}
		return err
	}
	data, stat, _, err := s.conn.GetW(key.path)
	if err == nil {
		w.Data, w.Stat = data, statOf(stat)
	}
	return err
}

// armBlind watches a node whose data may not be read. A server that has the
// mend of CVE-2024-23944 tells nothing of such a node to whoever watches it
// (exists included), so its parent's list of children is watched instead: each
// change there fires the watch, and the next look finds out.
func (s *Session) armBlind(key armed, w *Watch) error {
	siblings, err := s.WatchChildren(context.Background(), Parent(key.path))
	if err != nil {
		return err
	}
	node, err := s.Exists(context.Background(), key.path)
	if err == nil && !node.Exists {
		err = ErrNoNode
	}
	if err != nil {
		return err
	}
	w.Stat = node.Stat
	s.OnFire(siblings, func(fired Fired) {
		if fired == Deleted {
			fired = Changed // the parent was; the next look tells
		}
		s.fire(key, fired)
	})
	return nil
}

// dispatch fires the shared watches an event is about. An event that was made
// up for a lost connection carries another state than a server's.
func (s *Session) dispatch(e zk.Event) {
	fired := Changed
	switch {
	case e.State != zk.StateSyncConnected:
		fired = Stale
	case e.Type == zk.EventNodeDeleted:
		fired = Deleted
	}
	if e.Type != zk.EventNodeChildrenChanged {
		s.fire(armed{e.Path, false}, fired)
	}
	if e.Type == zk.EventNodeChildrenChanged || e.Type == zk.EventNodeDeleted || e.Type == zk.EventNotWatching {
		s.fire(armed{e.Path, true}, fired)
	}
}

func (s *Session) fire(key armed, fired Fired) {
	s.mu.Lock()
	w := s.watches[key]
	if w == nil {
		s.mu.Unlock()
		return
	}
	delete(s.watches, key)
	hooks := w.hooks
	w.hooks, w.spent, w.fired = nil, true, fired
	close(w.done)
	s.mu.Unlock()
	for _, hook := range hooks {
		hook(fired)
	}
}

// OnFire calls hook once when w fires, or at once when it has fired already.
// The hook runs in the client library's goroutine: it must not block.
func (s *Session) OnFire(w *Watch, hook func(Fired)) {
	s.mu.Lock()
	if !w.spent {
		w.hooks = append(w.hooks, hook)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	hook(w.fired)
}
