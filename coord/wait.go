package coord

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Wait calls look until it is done or fails, and returns its error. What look
// reads through the view is watched, and look is called again after any of it
// has changed, or has become uncertain because the connection was lost: a wait
// is a function of what it reads. It goes on over lost connections and
// sessions. When ctx ends, Wait returns its error ([Ended]), and when the
// client is closed, [ErrClosed]; [Client.Failure] adds what was waited for.
// What look does apart from reading must do no harm when it is done again.
//
// It costs one request for each thing that look reads, and none for what has
// not changed since the last look, for a deletion that a watch has told of, or
// for what this process watches already: its waits share the watch and the
// read. A watch stays until it fires, also when the wait is over.
func (c *Client) Wait(ctx context.Context, look func(v *View) (done bool, err error)) error {
	var last map[watched]*session.Watch
	for {
		v := &View{ctx: ctx, client: c, last: last}
		v.read = v.one[:0]
		if done, err := look(v); done || err != nil {
			return err
		}
		last = v.seen()
		if err := v.sleep(last); err != nil {
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

	mu    sync.Mutex
	last  map[watched]*session.Watch // what the look before this one has read
	read  []reading
	one   [1]reading // room for the usual look's
	ahead map[watched]begun
	until []<-chan struct{}
	at    time.Time
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

// Get reads a node. A missing node answers [ErrNoNode] and leaves no watch: a
// look that waits for a node to be made asks [View.Exists].
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
	if s == nil || checkPath(path) != nil || !v.client.hasCaughtUp(s) {
		return nil, Stat{}, false
	}
	w := s.Watching(session.Data, v.client.full(path))
	if w == nil {
		return nil, Stat{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read = append(v.read, reading{watched{session.Data, path}, w})
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

// Exists tells whether a node exists. It costs a second request when the node
// is missing. A server does not tell a client of a new node that the client may
// not read.
func (v *View) Exists(path string) (Stat, bool, error) {
	for {
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
	s, err := v.client.keeper.Session(v.ctx)
	if err != nil || v.client.catchUp(v.ctx, s) != nil {
		return // Get meets the same error
	}
	for _, path := range paths {
		key := watched{session.Data, path}
		v.mu.Lock()
		if checkPath(path) == nil && !v.hasGone(key) {
			if v.ahead == nil {
				v.ahead = map[watched]begun{}
			}
			v.ahead[key] = begun{s, s.Begin(key.kind, v.client.full(path))}
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

// watch reads and watches something of a node. That a watch of the look before
// has told of the node's deletion is an answer, once.
func (v *View) watch(op string, kind session.Kind, path string) (w *session.Watch, err error) {
	key := watched{kind, path}
	v.mu.Lock()
	gone, early := v.hasGone(key), v.ahead[key]
	delete(v.last, key)
	delete(v.ahead, key)
	v.mu.Unlock()
	if gone {
		return nil, opError(op, path, ErrNoNode)
	}
	w, err = read(v.ctx, v.client, op, path, func(s *session.Session, full string) (*session.Watch, error) {
		if early.session != s {
			early.attempt = s.Begin(kind, full)
		}
		early.session = nil
		return s.Await(v.ctx, early.attempt)
	})
	if err == nil {
		v.mu.Lock()
		v.read = append(v.read, reading{key, w})
		v.mu.Unlock()
	}
	return w, err
}

// hasGone tells whether a node has been deleted since the look before this one.
// v.mu is held.
func (v *View) hasGone(key watched) bool {
	w := v.last[key]
	return w != nil && key.kind != session.Absence && !w.Armed() && w.Fired() == session.Deleted
}

// seen returns the newest of each reading.
func (v *View) seen() map[watched]*session.Watch {
	seen := make(map[watched]*session.Watch, len(v.read))
	for _, r := range v.read {
		seen[r.watched] = r.watch
	}
	return seen
}

// sleep returns when the look is to be called again.
func (v *View) sleep(seen map[watched]*session.Watch) error {
	due, cancel := v.ctx, func() {}
	if !v.at.IsZero() {
		due, cancel = context.WithDeadline(v.ctx, v.at)
	}
	defer cancel()
	if len(seen)+len(v.until) == 0 && v.at.IsZero() {
		return fmt.Errorf("%w: a look that is not done has read nothing that can change", ErrInvalid)
	}
	wake := append(v.until, due.Done(), v.client.closed)
	for _, w := range seen {
		wake = append(wake, w.Done())
	}
	cases := make([]reflect.SelectCase, len(wake))
	for i, c := range wake {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	reflect.Select(cases)
	select {
	case <-v.client.closed:
		return ErrClosed
	case <-v.ctx.Done():
		return Ended(v.ctx)
	default:
		return nil
	}
}
