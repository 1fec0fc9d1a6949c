package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// term is a run for as long as its node lasts: a membership.
type term struct {
	*run
	hold  *coord.Hold   // of its place among the members
	fresh *coord.Client // reads of one term never go back in time
	ctx   context.Context
	end   context.CancelFunc
	busy  sync.WaitGroup
	joins bool   // those who follow the plan already
	rival string // the node of a later member of the same ID, or ""

	mu      sync.Mutex
	err     error // that ends Run
	over    bool  // the member has left
	plan    *Plan // that it follows
	tenders map[string]*tender
	yielded map[string]int64 // the plan's generation when the key was asked for
}

// term is a member once. It reports whether Run is over.
func (r *run) term(ctx context.Context) (over bool, err error) {
	h, _, err := r.client.Stand(ctx, coord.Spec{Line: r.members(), Kind: "member", Recipe: r.path, Data: r.record(), Unlisted: true})
	if err != nil {
		return false, err
	}
	t := &term{run: r, hold: h, fresh: r.client.Fresh(), tenders: map[string]*tender{}, yielded: map[string]int64{}}
	t.ctx, t.end = context.WithCancel(h.Context(ctx))
	defer t.end()
	t.do(t.depart)
	t.do(func() error {
		err := t.admit()
		if err == nil {
			t.joins = t.admitted
			t.do(t.lead)
			err = t.follow()
		}
		return err
	})
	<-t.ctx.Done()
	// The other members are to know at once, whatever the functions do.
	releasing, cancel := recipe.Grace(ctx)
	defer cancel()
	_ = h.Release(releasing)
	t.busy.Wait()
	return t.over || r.leaving() && ctx.Err() == nil, t.err
}

// do calls f in the background, and ends Run if it fails before the term ends.
// The loss of the member's node ends the term: f may learn of it first.
func (t *term) do(f func() error) {
	t.busy.Go(func() {
		if err := f(); err != nil && t.ctx.Err() == nil && !errors.Is(err, coord.ErrLost) {
			t.fail(t.client.Failure("run", t.path, err))
		}
	})
}

func (t *term) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil && t.err == nil && !t.over {
		t.err = err
	}
	t.end()
}

// depart tells the planner when the member is to leave.
func (t *term) depart() error {
	select {
	case <-t.leave:
	case <-t.hold.Revoked():
		t.begin.Do(func() { close(t.leave) })
	case <-t.ctx.Done():
		return nil
	}
	t.mu.Lock()
	t.leaveIfDone()
	t.mu.Unlock()
	return t.client.Retry(t.ctx, func(ctx context.Context) error {
		return recipe.NewRecord(t.client, t.hold.Node()).Change(ctx, t.hold.Txn, func([]byte, coord.Stat) ([]byte, error) { return t.record(), nil })
	})
}

// leaveIfDone ends the term of a leaving member that has nothing left. t.mu is
// held.
func (t *term) leaveIfDone() {
	if !t.leaving() || len(t.tenders) > 0 || t.err != nil {
		return
	}
	if t.plan != nil && len(t.plan.Of(t.node())) > 0 {
		return
	}
	t.over = true
	t.end()
}

// node is the name of the member's node.
func (t *term) node() string { return lastPart(t.hold.Node()) }

// admit waits until there is a plan with the member's list, or until the member
// is first in line, and may make the list. It fails if members follow another.
func (t *term) admit() error {
	if t.admitted {
		return nil
	}
	return t.fresh.Wait(t.ctx, func(v *coord.View) (bool, error) {
		p, _, err := t.look(v)
		if err != nil {
			return false, err
		}
		if p != nil && (t.list.keys == nil || t.list.hash() == p.list().hash()) {
			t.admitted = true
			return true, nil
		}
		names, err := t.fresh.Children(t.ctx, t.members().Dir)
		if err != nil {
			return false, err
		}
		if p != nil && slices.ContainsFunc(names, func(name string) bool { return name != t.node() && p.names(name) }) {
			return false, fmt.Errorf("%w: members that run have another one (%s); start without a list, or change theirs by SetKeys",
				ErrKeys, t.list.differs(p.list()))
		}
		first, err := t.isFirst(v, names)
		if first && t.list.keys == nil {
			err = fmt.Errorf("%w: there is no list yet; start a member with one, or call SetKeys", ErrKeys)
		}
		return first, err
	})
}

// look reads the plan; without one, it is nil.
func (s *Shards) look(v *coord.View) (*Plan, coord.Stat, error) {
	data, stat, err := recipe.NewRecord(s.client, s.planNode()).Look(v, nil)
	if err != nil || stat.Czxid == 0 {
		return nil, stat, err
	}
	p, err := decode(data)
	return p, stat, err
}

// isFirst reports whether the member is the first of those listed. If not, it
// watches the one before it.
func (t *term) isFirst(v *coord.View, names []string) (bool, error) {
	line := t.members().Order(names, t.client.Dialect())
	at := slices.IndexFunc(line, func(c coord.Contender) bool { return c.Name == t.node() })
	if v.Until(t.hold.Done()); at <= 0 {
		return at == 0, nil
	}
	_, _, err := v.Get(t.members().Dir + "/" + line[at-1].Name)
	if errors.Is(err, coord.ErrNoNode) {
		v.Again()
		err = nil
	}
	return false, err
}

// follow does as the plan says.
func (t *term) follow() error {
	look := func(v *coord.View) (*Plan, error) {
		p, _, err := t.look(v)
		return p, err
	}
	same := func(a, b *Plan) bool { return a == nil || b != nil && a.Generation == b.Generation && a.By == b.By }
	for p, err := range recipe.Observe(t.ctx, t.fresh, t.planNode(), look, same) {
		if err == nil && p != nil {
			err = t.apply(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply makes the member stand in line for the keys that the plan gives it, and
// for no others. It keeps a key that the plan gives to another member until
// that member asks, and drains a key that the plan gives to nobody.
func (t *term) apply(p *Plan) error {
	t.doubt(p)
	if p.names(t.node()) {
		t.named.Store(true)
	} else if t.joins && !t.named.Load() && t.self.List != "" && t.self.List != p.list().hash() {
		return fmt.Errorf("%w: it has changed since this member came (%s)", ErrKeys, t.list.differs(p.list()))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan = p
	own := map[string]bool{}
	for _, at := range p.Of(t.node()) {
		own[p.Keys[at]] = true
	}
	for key, td := range t.tenders {
		if own[key] && !td.quiet {
			continue
		}
		if td.unwant(); own[key] {
			continue // begins anew, and asks
		}
		if _, named := p.Owner(p.Place(key)); !named {
			td.drop.Do(func() { close(td.dropped) })
		}
	}
	for key := range own {
		t.tend(key)
	}
	t.leaveIfDone()
	return nil
}

// doubt ends Run if the plan has a later member of the same ID that is there to
// stay. One that goes within the session time-out was made late by a server, of
// a claim that is given up; nobody asks for keys in its name.
func (t *term) doubt(p *Plan) {
	i := slices.IndexFunc(p.Members, func(m Member) bool { return m.ID == t.self.ID })
	if i < 0 || p.Members[i].Node == t.node() || p.Members[i].Node == t.rival {
		return
	}
	other := p.Members[i].Node
	line := t.members().Order([]string{t.node(), other}, t.client.Dialect())
	if len(line) != 2 || line[0].Name != t.node() {
		return
	}
	t.rival = other
	late := time.Now().Add(t.client.SessionTimeout())
	t.do(func() error {
		return t.fresh.Wait(t.ctx, func(v *coord.View) (bool, error) {
			_, there, err := v.Exists(t.members().Dir + "/" + other)
			if v.At(late); err == nil && there && !time.Now().Before(late) {
				err = fmt.Errorf("%w: %s", ErrReplaced, t.self.ID)
			}
			return !there, err
		})
	})
}

// tender is a key that the member stands in line for, or owns.
type tender struct {
	key     string
	wanted  context.Context // ends when the plan names another
	unwant  context.CancelFunc
	drop    sync.Once
	dropped chan struct{} // closed when the key is to be drained without a request
	quiet   bool          // asks nobody: whoever asked for the key may know a newer plan
}

// tend begins to tend a key, unless the member does; t.mu is held.
func (t *term) tend(key string) {
	if t.tenders[key] != nil || t.ctx.Err() != nil {
		return
	}
	yielded, has := t.yielded[key]
	td := &tender{key: key, dropped: make(chan struct{}), quiet: has && yielded == t.plan.Generation}
	td.wanted, td.unwant = context.WithCancel(t.ctx)
	t.tenders[key] = td
	t.busy.Go(func() {
		err := t.own(td)
		td.unwant()
		t.mu.Lock()
		delete(t.tenders, key)
		if err == nil && t.plan.Place(key) >= 0 {
			if m, named := t.plan.Owner(t.plan.Place(key)); named && m.Node == t.node() {
				t.tend(key)
			}
		}
		t.leaveIfDone()
		t.mu.Unlock()
		if err != nil {
			t.fail(err)
		}
	})
}

// own waits for a key, has the function work for it, and releases it.
func (t *term) own(td *tender) error {
	h, err := t.claim(td)
	if err != nil {
		if td.wanted.Err() != nil {
			return nil
		}
		return t.client.Failure("run", t.path, err)
	}
	if td.wanted.Err() == nil {
		err = t.serve(td, h)
	}
	if errors.Is(h.Err(), coord.ErrLost) {
		err = nil
	}
	releasing, cancel := recipe.Grace(t.ctx)
	defer cancel()
	_ = h.Release(releasing) // a deletion that is not confirmed goes on in the background
	return err
}

// lastMoment is how long a function has to return after its context has ended
// because it has not drained the key in time.
const lastMoment = time.Second

// serve calls the function, and returns when the key is to be released.
func (t *term) serve(td *tender, h *coord.Hold) error {
	draining := make(chan struct{})
	inner, end := context.WithCancelCause(context.WithValue(t.ctx, drainingKey{}, (<-chan struct{})(draining)))
	defer end(nil) // also when the function panics
	ctx, returned := h.Context(inner), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-h.Revoked():
			t.mu.Lock()
			t.yielded[td.key] = t.plan.Generation
			t.mu.Unlock()
		case <-td.dropped:
		case <-ctx.Done():
			return
		}
		close(draining)
		timer := time.NewTimer(t.drain)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(ErrDrainTimeout)
			timer.Reset(lastMoment)
			select {
			case <-timer.C:
				h.Abandon()
			case <-returned:
			}
		case <-ctx.Done():
		}
	})
	err := t.f(ctx, td.key, h)
	close(returned)
	if err == nil {
		select {
		case <-draining:
		case <-ctx.Done():
		}
	}
	if end(nil); context.Cause(inner) == ErrDrainTimeout {
		err = nil
	}
	watching.Wait()
	return err
}

// claim stands in line for a key until it is owned, or the plan names another.
// It asks the first in line to give the key up, which drains it.
func (t *term) claim(td *tender) (*coord.Hold, error) {
	line, asked := t.Line(td.key), ""
	ctx, cancel := context.WithCancel(td.wanted) // ends the asking
	defer cancel()
	if td.quiet { // for a time, in which whoever asked for the key is to read a newer plan
		defer time.AfterFunc(t.client.SessionTimeout(), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.yielded, td.key)
			td.unwant() // begins anew, and asks
		}).Stop()
	}
	return t.client.Acquire(td.wanted, coord.Spec{Line: line, Kind: "lock", Recipe: t.path, Exclusive: true}, func(ahead []coord.Contender) ([]int, bool) {
		wait, granted := coord.First(ahead)
		if !granted && !td.quiet && ahead[0].Name != asked {
			asked = ahead[0].Name
			node := line.Dir + "/" + asked
			t.do(func() error { return t.ask(ctx, node) })
		}
		return wait, granted
	})
}

// ask asks a contender to give its turn up.
func (t *term) ask(ctx context.Context, node string) error {
	err := t.client.Retry(ctx, func(ctx context.Context) error { return inspect.Revoke(ctx, t.client, node) })
	if ctx.Err() != nil {
		return nil // owned, or not wanted any more
	}
	return err
}

func lastPart(node string) string { return node[strings.LastIndexByte(node, '/')+1:] }
