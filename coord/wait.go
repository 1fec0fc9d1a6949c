package coord

import (
	"context"
	"errors"
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
// and when the client is closed, [ErrClosed]; recipe.Failure adds the purpose
// of the wait. Whatever look does besides reading must do no harm when it is
// repeated.
//
// It costs one request for each thing that look reads, and none for what has
// not changed since the last look or is watched by this process already: waits
// share watches and reads. A deletion that a watch has reported costs none
// either, if the look has read nothing new before. A watch stays until it
// fires, also when the wait is over.
func (c *Client) Wait(ctx context.Context, look func(v *View) (done bool, err error)) error {
	if look == nil {
		return c.failure("wait", "", errNoFunction)
	}
	w := wait{client: c, waker: session.NewWaker()}
	return w.run(ctx, look)
}

// wait is a wait for what a look reads.
type wait struct {
	client *Client
	sess   *session.Session // the only one to read in, or nil
	waker  session.Waker    // has the look called again
	read   []reading        // by the newest look
}

// run looks until that is done. Thousands may wait here: little stays on the
// stack and on the heap.
func (w *wait) run(ctx context.Context, look func(v *View) (done bool, err error)) error {
	for {
		if done, err := w.once(ctx, look); done || err != nil {
			return err
		}
		select {
		case <-w.waker:
		case <-w.closed():
		case <-ctx.Done():
		}
		if err := w.ended(ctx); err != nil {
			return err
		}
	}
}

// closed returns what ends the wait with the client. The watches of a session
// fire at its end.
func (w *wait) closed() <-chan struct{} {
	if w.sess != nil {
		return nil
	}
	return w.client.closed
}

// once looks, and has the waker woken when it is time for the next look. It
// sleeps itself only if something other than a watch can end the sleep.
func (w *wait) once(ctx context.Context, look func(v *View) (done bool, err error)) (done bool, err error) {
	w.waker.Rest()
	v := &View{ctx: ctx, client: w.client, sess: w.sess, before: w.read}
	done, err = look(v)
	if !done && err == nil && len(v.read)+len(v.until) == 0 && v.at.IsZero() && !v.again {
		err = errIdle
	}
	w.forget()
	w.read = v.read
	if done || err != nil {
		w.forget()
		return done, err
	}
	if v.again {
		w.waker.Wake()
		return false, nil
	}
	for i := range w.read {
		if r := &w.read[i]; !r.told {
			r.watch.Tell(w.waker)
			r.told = true
		}
	}
	if len(v.until) > 0 || !v.at.IsZero() {
		calls.Sleep(ctx, append(v.until, ctx.Done(), w.client.closed, w.waker), v.at)
		w.waker.Wake()
	}
	return false, nil
}

var errIdle = wire.Invalid("a look that is not done has read nothing that can change")

// forget keeps what the newest look has read from waking the waker.
func (w *wait) forget() {
	for i := range w.read {
		if r := &w.read[i]; r.told {
			r.watch.Untell(w.waker)
			r.told = false
		}
	}
}

// ended returns why the wait has ended without a look, or nil.
func (w *wait) ended(ctx context.Context) (err error) {
	select {
	case <-w.client.closed:
		err = ErrClosed
	case <-ctx.Done():
		err = calls.Ended(ctx)
	default:
		return nil
	}
	w.forget()
	return w.client.explain(err)
}

// View is what a look reads through: see [Client.Wait]. It is of use during
// that look only. Reads that are made at the same time, in several goroutines
// or after [View.Prefetch], travel together.
type View struct {
	ctx    context.Context
	client *Client
	sess   *session.Session // the only one to read in, or nil

	mu      sync.Mutex
	before  []reading            // by the look before this one
	last    map[watched]*reading // the newest of each of these, once it is asked for
	learned bool                 // something that the look before this one did not know
	read    []reading
	ahead   map[watched]begun
	until   []<-chan struct{}
	at      time.Time
	again   bool
}

type watched struct {
	path string
	kind session.Kind
}

type reading struct {
	watch *session.Watch
	kind  session.Kind
	told  bool // the watch wakes the waiter
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
	return slices.Clone(w.Data), statOf(w.Stat), nil
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
	key := watched{path, session.Data}
	v.note(key, w, v.previous(key))
	return slices.Clone(w.Data), statOf(w.Stat), true
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
	return slices.Clone(w.Children()), statOf(w.Stat), nil
}

// ChildrenIfAny is [View.Children] of a directory that may be missing: it is
// empty then, and the look is called again when it is made. Two more requests
// while it is missing.
func (v *View) ChildrenIfAny(path string) ([]string, error) {
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

// Prefetch begins to read nodes that [View.Get] will be asked for: one round
// trip.
func (v *View) Prefetch(paths ...string) {
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
		key := watched{path, session.Data}
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

// RecheckOn has the look called again when done is closed, such as a hold's
// Done.
func (v *View) RecheckOn(done <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.until = append(v.until, done)
}

// RecheckAt has the look called again at t.
func (v *View) RecheckAt(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.IsZero() || t.Before(v.at) {
		v.at = t
	}
}

// RecheckNow has the look called again immediately: for one that begins anew
// after what it has found.
func (v *View) RecheckNow() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.again = true
}

// watch reads and watches something of a node. If a watch of the previous look
// has reported the node's deletion, that report is the answer, once, and only
// before this look has learned anything else: a listing may show that the node
// was made anew.
func (v *View) watch(op string, kind session.Kind, path string) (w *session.Watch, err error) {
	key := watched{path, kind}
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
	v.learned = v.learned || err != nil
	if err == nil {
		key.path = v.client.relative(w.Path())
		v.note(key, w, previous)
	}
	return w, err
}

// note notes what was read, and what the look before this one read there; v.mu
// is held.
func (v *View) note(key watched, w *session.Watch, previous *reading) {
	told := false
	if previous != nil && previous.watch == w {
		told, previous.told = previous.told, false
	} else {
		v.learned = true
	}
	v.read = append(v.read, reading{w, key.kind, told})
}

// hasGone reports whether a node has been deleted since the look before this
// one, as far as this look knows. v.mu is held.
func (v *View) hasGone(key watched) bool {
	r := v.previous(key)
	return !v.learned && r != nil && key.kind != session.Absence && r.watch.Fired() == session.Deleted
}

// previous returns the newest reading of the look before this one, unless this
// look has read the same. v.mu is held.
func (v *View) previous(key watched) *reading {
	if v.last == nil && len(v.before) > 0 {
		v.last = make(map[watched]*reading, len(v.before))
		for i := range v.before {
			r := &v.before[i]
			v.last[watched{v.client.relative(r.watch.Path()), r.kind}] = r
		}
	}
	return v.last[key]
}

// isStale reports whether something that the look before this one read is not
// known any more.
func (v *View) isStale() bool {
	return slices.ContainsFunc(v.before, func(r reading) bool { return r.watch.Fired() == session.Stale })
}
