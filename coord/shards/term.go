package shards

import (
	"context"
	"encoding/json"
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
	hold      *coord.Hold   // of its place among the members
	fresh     *coord.Client // reads of one term never go back in time
	ctx       context.Context
	end       context.CancelFunc
	busy      sync.WaitGroup
	duplicate duplicateCheck
	told      int64 // the change, of a plan that cannot be read, that was told of

	// Guarded by run.mu.
	err     error // that ends Run
	over    bool  // the member has left
	plan    *Plan // that it follows, or nil
	planned int64 // the change that made it
	workers map[string]*worker
	yielded map[string]int64 // the plan, by its change, when the key was asked for
}

// member is a member once. It reports whether Run is over.
func (r *run) member(ctx context.Context, h *coord.Hold) (over bool, err error) {
	t := &term{
		run: r, hold: h, fresh: r.client.Synced(), told: -1, workers: map[string]*worker{}, yielded: map[string]int64{},
	}
	t.ctx, t.end = context.WithCancel(h.Context(ctx))
	defer t.end()
	r.mu.Lock()
	r.term = t
	r.mu.Unlock()
	t.do(t.awaitLeave)
	t.do(t.announce)
	t.do(t.follow)
	t.do(t.lead)
	<-t.ctx.Done()
	// The other members are to know at once, whatever the functions do.
	releasing, cancel := recipe.Grace(ctx)
	defer cancel()
	_ = h.Release(releasing)
	t.busy.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = nil
	return t.over || r.leaving() && ctx.Err() == nil && t.err == nil, t.err
}

// do calls f in the background, again and again while it fails, until the term
// ends. The loss of the member's node ends the term: f may learn of it first.
func (t *term) do(f func(context.Context) error) {
	t.busy.Go(func() {
		err := t.insist(t.ctx, t.delayed, f)
		if err != nil && t.ctx.Err() == nil && !errors.Is(err, coord.ErrLost) {
			t.fail(recipe.Failure(t.client, "run", t.path, err))
		}
	})
}

// fail ends Run.
func (t *term) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil && t.err == nil && !t.over {
		t.err = err
	}
	t.end()
}

// awaitLeave learns that the member is to leave.
func (t *term) awaitLeave(ctx context.Context) error {
	select {
	case <-t.leave:
	case <-t.hold.Revoked():
		t.toLeave()
	case <-ctx.Done():
		return nil
	}
	t.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveIfDone()
	return nil
}

// leaveIfDone ends the term of a leaving member that has nothing left. t.mu is
// held.
func (t *term) leaveIfDone() {
	if !t.leaving() || len(t.workers) > 0 || t.err != nil {
		return
	}
	if t.plan != nil && len(t.plan.Of(t.node())) > 0 {
		return
	}
	t.over = true
	t.end()
}

// announce writes the member's record whenever it has changed.
func (t *term) announce(ctx context.Context) error {
	for {
		select {
		case <-t.news:
		case <-ctx.Done():
			return nil
		}
		err := recipe.Retry(ctx, t.client, func(ctx context.Context) error {
			return recipe.NewRecord(t.client, t.hold.Node()).
				Change(ctx, t.hold.Txn, func(data []byte, _ coord.Stat) ([]byte, error) {
					if inspect.IsRevocation(data) { // which is about to be written over
						t.toLeave()
					}
					return json.Marshal(t.record())
				})
		})
		if err != nil {
			t.changed()
			return err
		}
		select {
		case <-time.After(announcePause):
		case <-t.leave:
		case <-ctx.Done():
		}
	}
}

// node is the name of the member's node.
func (t *term) node() string { return lastPart(t.hold.Node()) }

// follow does as the plan says, which also decides whether this process is a
// member.
func (t *term) follow(ctx context.Context) error {
	return t.fresh.Wait(ctx, func(v *coord.View) (bool, error) {
		p, stat, err := t.look(v)
		if p == nil || err != nil {
			return false, t.unreadable(stat, err)
		}
		if known := t.learn(p); known.version > p.Version {
			err := t.bring(ctx, known)
			if errors.Is(err, coord.ErrTooLarge) {
				err = refusal{err}
			}
			return false, err
		}
		if err := t.belongs(v, p); err != nil {
			return false, err
		}
		if stat.Mzxid != t.planned {
			t.apply(p, stat.Mzxid)
		}
		return false, nil
	})
}

// unreadable reports, once for each change, why there is nothing to follow. The
// member keeps what it has.
func (t *term) unreadable(stat coord.Stat, err error) error {
	e := Event{Kind: ListIsMissing, Err: errNoList}
	switch {
	case errors.Is(err, errNoPlan):
		e.Kind, e.Err = PlanIsNoPlan, err
	case errors.Is(err, errNewerPlan):
		e.Kind, e.Err = PlanIsNewer, err
	case err != nil:
		return err
	case t.knows().known():
		return nil
	}
	if t.told != stat.Mzxid {
		t.told = stat.Mzxid
		t.tell(e)
	}
	return nil
}

// learn remembers the plan, and its list unless a newer one is known, which it
// returns.
func (t *term) learn(p *Plan) (known list) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = p
	if p.Version > t.known.version || p.Version == t.known.version && p.names(t.node()) {
		if t.known.version != p.Version {
			t.changed()
		}
		t.known = p.list()
	}
	if came := t.list; came.known() && p.Version > max(came.version, t.toldList) && p.list().hash() != came.hash() {
		t.toldList = p.Version
		t.tell(Event{Kind: ListIsNewer, Err: fmt.Errorf("the list has version %d, and this member came with version %d (%s)",
			p.Version, came.version, came.differs(p.list()))})
	}
	return t.known
}

// duplicateCheck is a reason to refuse a member that may pass.
type duplicateCheck struct {
	about string
	until time.Time
}

// lasts reports whether something has kept the member out for a session
// timeout.
func (t *term) lasts(v *coord.View, about string) bool {
	if t.duplicate.about != about {
		t.duplicate = duplicateCheck{about, time.Now().Add(t.client.Info().SessionTimeout)}
	}
	v.RecheckAt(t.duplicate.until)
	return !time.Now().Before(t.duplicate.until)
}

// belongs returns why the member is refused, if it is. It is in if the plan
// names its node. If neither is so, it waits for the planner.
func (t *term) belongs(v *coord.View, p *Plan) error {
	if p.names(t.node()) {
		t.duplicate = duplicateCheck{}
		return nil
	}
	if known := t.knows(); p.conflicts(known.hash(), known.version, p.list().hash()) {
		names, err := t.fresh.Children(t.ctx, t.members().Dir)
		if err != nil || !p.isFollowed(names) {
			return err
		}
		return refusal{fmt.Errorf(
			"%w: another list of keys: members have version %d (%s); start without a list, or make it version %d",
			coord.ErrDisagree, p.Version, known.differs(p.list()), p.Version+1)}
	}
	others := slices.Clone(p.Members)
	if i := slices.IndexFunc(others, func(m Member) bool { return m.ID == t.self.ID }); i >= 0 {
		// A node that soon goes again was made late by a server, for a claim
		// that was given up; nobody asks for keys in its name.
		if rival := others[i].Node; t.isLater(rival) {
			_, there, err := v.Exists(t.members().Dir + "/" + rival)
			if err == nil && there && t.lasts(v, rival) {
				err = refusal{fmt.Errorf("%w: %s", ErrReplaced, t.self.ID)}
			}
			return err
		}
		others = slices.Delete(others, i, i+1)
	}
	if err := p.hasRoom(append(others, t.self)); err != nil && t.lasts(v, "room") {
		return refusal{err}
	}
	return nil
}

// isLater reports whether another member's node stands behind this one's.
func (t *term) isLater(node string) bool {
	line := t.members().Order([]string{t.node(), node}, t.client.Info().Dialect)
	return len(line) == 2 && line[0].Name == t.node()
}

// apply makes the member stand in line for the keys that the plan gives it, and
// for no others. It keeps a key that the plan gives to another member until
// that member asks, and drains a key that the plan gives to nobody, or that
// nobody asks for within a session timeout though this member is to leave.
func (t *term) apply(p *Plan, change int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan, t.planned = p, change
	own := map[string]bool{}
	for _, at := range p.Of(t.node()) {
		own[p.Keys[at]] = true
	}
	for key, w := range t.workers {
		if own[key] && !w.quiet {
			continue
		}
		w.cancel()
		if own[key] {
			continue // begins anew, and asks
		}
		if _, named := p.Owner(p.Place(key)); !named {
			w.drop()
		} else if t.leaving() {
			time.AfterFunc(t.client.Info().SessionTimeout, w.drop)
		}
	}
	for key := range own {
		t.startKey(key)
	}
	t.leaveIfDone()
}

// startKey begins to work for a key, unless the member does, or an earlier call
// of its function has not returned; t.mu is held.
func (t *term) startKey(key string) {
	if tr := t.troubles[key]; t.workers[key] != nil || t.ctx.Err() != nil || tr != nil && tr.life == LifeGivenUp {
		return
	}
	w := newWorker(t, key)
	t.workers[key] = w
	t.busy.Go(func() {
		defer w.cancel()
		w.own()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.workers, key)
		t.startIfOwn(key)
		t.leaveIfDone()
	})
}

// startIfOwn starts a key if the plan gives it to this member; t.mu is held.
func (t *term) startIfOwn(key string) {
	if t.plan == nil {
		return
	}
	if m, named := t.plan.Owner(t.plan.Place(key)); named && m.Node == t.node() {
		t.startKey(key)
	}
}

func lastPart(node string) string { return node[strings.LastIndexByte(node, '/')+1:] }
