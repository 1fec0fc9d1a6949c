package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Wait calls look until it is done or fails, and returns its error. Wait
// watches everything that look reads through the view, and calls look again
// after any of it has changed, or has become uncertain because the connection
// was lost: a wait is a function of the nodes it reads. The wait goes on over
// lost connections and sessions. When ctx ends, Wait returns the error of ctx,
// and when the client is closed, [ErrClosed]; [Client.Failure] adds the purpose
// of the wait. Apart from reading, look must do nothing that does harm when
// repeated.
//
// It costs one request for each thing that look reads. There is none for what
// has not changed since the last look, or is watched by this process already,
// whose waits share watches and reads. Nor is there one for a deletion that a
// watch has reported, if the look has read nothing new before. A watch stays
// until it fires, also when the wait is over.
func (c *Client) Wait(ctx context.Context, look func(v *View) (done bool, err error)) error {
	if look == nil {
		return c.Failure("wait", "", errNoFunction)
	}
	return c.waitIn(ctx, nil, look)
}

// waitIn is Wait for what concerns one session only, unless s is nil.
func (c *Client) waitIn(ctx context.Context, s *session.Session, look func(v *View) (done bool, err error)) error {
	var read []reading
	for {
		v := &View{ctx: ctx, client: c, sess: s, before: read}
		if done, err := look(v); done || err != nil {
			return err
		}
		wake, at, err := v.wakers()
		if err == nil {
			read = v.read // and no more of the view: thousands may wait
			if !v.again {
				calls.Sleep(ctx, wake, at)
			}
			select {
			case <-c.closed:
				err = ErrClosed
			case <-ctx.Done():
				err = calls.Ended(ctx)
			default:
			}
		}
		if err != nil {
			return c.explain(err)
		}
	}
}

// View is what a look reads through: see [Client.Wait]. It is of use during
// that look only. Reads that are made at the same time, in several goroutines
// or after [View.Ahead], travel together.
type View struct {
	ctx    context.Context
	client *Client
	sess   *session.Session // the only one to read in, or nil

	mu      sync.Mutex
	before  []reading                  // by the look before this one
	last    map[watched]*session.Watch // the newest of each of these, once it is asked for
	learned bool                       // something that the look before this one did not know
	read    []reading
	ahead   map[watched]begun
	until   []<-chan struct{}
	at      time.Time
	again   bool
}

type watched struct {
	kind session.Kind
	path string
}

type reading struct {
	watched
	watch *session.Watch
}

type begun struct {
	session *session.Session
	attempt session.Attempt
}

// Context returns the context of the wait.
func (v *View) Context() context.Context { return v.ctx }

// Get reads a node. A missing node answers [ErrNoNode] and leaves no watch: a
// look that waits for a node to be made asks [View.Exists]. A node that may not
// be read, in a directory that may be listed, answers its Stat and no data.
func (v *View) Get(path string) ([]byte, Stat, error) {
	w, err := v.watch("get", session.Data, path)
	if err != nil {
		return nil, Stat{}, err
	}
	return slices.Clone(w.Data), Stat(w.Stat), nil
}

// Peek is [View.Get] of a node that this process watches already. It makes no
// request: if the node is not watched, or has changed since, known is false.
func (v *View) Peek(path string) (data []byte, stat Stat, known bool) {
	s := v.client.keeper.Current()
	if s == nil || wire.CheckPath(path) != nil || !v.client.hasCaughtUp(s) {
		return nil, Stat{}, false
	}
	w := s.Watches.Get(session.Data, v.client.full(path))
	if w == nil {
		return nil, Stat{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := watched{session.Data, path}
	v.learned = v.learned || w != v.previous(key)
	v.read = append(v.read, reading{key, w})
	return slices.Clone(w.Data), Stat(w.Stat), true
}

// Children lists the names of a node's children in no particular order. A
// missing node answers [ErrNoNode] and leaves no watch. A look that lists a
// directory is called at each change of it: those who wait in a line do not
// list it like that, or each change would wake all of them.
func (v *View) Children(path string) ([]string, Stat, error) {
	w, err := v.watch("list", session.Children, path)
	if err != nil {
		return nil, Stat{}, err
	}
	return slices.Clone(w.Children), Stat(w.Stat), nil
}

// Dir is [View.Children] of a directory that may be missing: it is empty then,
// and the look is called again when it is made. Two more requests while it is
// missing.
func (v *View) Dir(path string) ([]string, error) {
	for changed := session.Repeats(0); ; changed.Pause(v.ctx, v.client.keeper.Current()) {
		names, _, err := v.Children(path)
		if !errors.Is(err, ErrNoNode) {
			return names, err
		}
		if _, there, err := v.Exists(path); !there {
			return nil, err
		}
	}
}

// Exists reports whether a node exists. It costs a second request when the node
// is missing. A server does not report a new node to a client that may not read
// it.
func (v *View) Exists(path string) (Stat, bool, error) {
	for changed := session.Repeats(0); ; changed.Pause(v.ctx, v.client.keeper.Current()) {
		_, stat, err := v.Get(path)
		if !errors.Is(err, ErrNoNode) {
			return stat, err == nil, err
		}
		if _, err = v.watch("exists", session.Absence, path); !errors.Is(err, ErrNodeExists) {
			return Stat{}, false, err
		}
	}
}

// Ahead begins to read nodes that [View.Get] will be asked for: one round trip.
func (v *View) Ahead(paths ...string) {
	s, err := v.sess, error(nil)
	if s == nil {
		if s, err = v.client.keeper.Session(v.ctx); err == nil {
			err = v.client.catchUp(v.ctx, s)
		}
	}
	if err != nil {
		return // Get meets the same error
	}
	for _, path := range paths {
		key := watched{session.Data, path}
		v.mu.Lock()
		if wire.CheckPath(path) == nil && !v.hasGone(key) {
			if v.ahead == nil {
				v.ahead = map[watched]begun{}
			}
			v.ahead[key] = begun{s, s.Watches.Begin(key.kind, v.client.full(path))}
		}
		v.mu.Unlock()
	}
}

// Until has the look called again when done is closed, such as a hold's Done.
func (v *View) Until(done <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.until = append(v.until, done)
}

// At has the look called again at t.
func (v *View) At(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.IsZero() || t.Before(v.at) {
		v.at = t
	}
}

// Again has the look called again immediately: for one that begins anew after
// what it has found.
func (v *View) Again() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.again = true
}

// watch reads and watches something of a node. If a watch of the previous look
// has reported the node's deletion, that report is the answer, once, and only
// before this look has learned anything else: a listing may show that the node
// was made anew.
func (v *View) watch(op string, kind session.Kind, path string) (w *session.Watch, err error) {
	key := watched{kind, path}
	v.mu.Lock()
	gone, early, previous := v.hasGone(key), v.ahead[key], v.previous(key)
	delete(v.last, key)
	delete(v.ahead, key)
	v.mu.Unlock()
	if gone {
		return nil, opError(op, path, ErrNoNode)
	}
	await := func(s *session.Session, full string) (*session.Watch, error) {
		if early.session != s {
			early.attempt = s.Watches.Begin(kind, full)
		}
		early.session = nil
		return s.Watches.Await(v.ctx, early.attempt)
	}
	if v.sess != nil {
		w, err = znode.Read(v.ctx, v.sess, func() (*session.Watch, error) { return await(v.sess, v.client.full(path)) })
	} else {
		w, err = read(v.ctx, v.client, op, path, await)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learned = v.learned || err != nil || w != previous
	if err == nil {
		v.read = append(v.read, reading{key, w})
	}
	return w, err
}

// hasGone reports whether a node has been deleted since the look before this
// one, as far as this look knows. v.mu is held.
func (v *View) hasGone(key watched) bool {
	w := v.previous(key)
	return !v.learned && w != nil && key.kind != session.Absence && w.Fired() == session.Deleted
}

// previous returns the newest watch that the look before this one had, unless
// this look has read the same. v.mu is held.
func (v *View) previous(key watched) *session.Watch {
	if v.last == nil && len(v.before) > 0 {
		v.last = make(map[watched]*session.Watch, len(v.before))
		for _, r := range v.before {
			v.last[r.watched] = r.watch
		}
	}
	return v.last[key]
}

// isStale reports whether something that the look before this one read is not
// known any more.
func (v *View) isStale() bool {
	return slices.ContainsFunc(v.before, func(r reading) bool { return r.watch.Fired() == session.Stale })
}

// wakers returns what has the look called again.
func (v *View) wakers() (wake []<-chan struct{}, at time.Time, err error) {
	if len(v.read)+len(v.until) == 0 && v.at.IsZero() && !v.again {
		return nil, v.at, fmt.Errorf("%w: a look that is not done has read nothing that can change", ErrInvalid)
	}
	wake = make([]<-chan struct{}, 0, len(v.until)+2+len(v.read))
	wake = append(append(wake, v.until...), v.ctx.Done(), v.client.closed)
	for _, r := range v.read {
		wake = append(wake, r.watch.Done())
	}
	return wake, v.at, nil
}
