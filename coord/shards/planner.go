package shards

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// settle is how long the planner waits after a change for related ones, before
// it writes a plan.
const settle = 100 * time.Millisecond

// look reads the plan; without one, it is nil.
func (s *Shards) look(v *coord.View) (*Plan, coord.Stat, error) {
	data, stat, err := recipe.NewRecord(s.client, s.planNode()).Look(v, nil)
	if err != nil || stat.Czxid == 0 {
		return nil, stat, err
	}
	p, err := decode(data)
	return p, stat, err
}

// readable is look for a writer of plans: unreadable data are nil, too.
func (s *Shards) readable(v *coord.View) (*Plan, coord.Stat, error) {
	p, stat, err := s.look(v)
	if errors.Is(err, errNoPlan) {
		err = nil
	}
	return p, stat, err
}

// lead writes plans while it is this member's turn.
func (t *term) lead(ctx context.Context) error {
	p := &planner{term: t, arrived: map[string]string{}}
	for {
		err := t.awaitTurn(ctx)
		for err == nil {
			err = p.step(ctx)
			switch {
			case errors.Is(err, coord.ErrBadVersion), errors.Is(err, coord.ErrNodeExists), errors.Is(err, coord.ErrNoNode):
				err = nil // somebody else has changed the plan
			}
		}
		if !errors.Is(err, errNotFirst) {
			return err
		}
	}
}

// errNotFirst: another member plans.
var errNotFirst = errors.New("another member plans")

// awaitTurn waits until no member is ahead that can plan.
func (t *term) awaitTurn(ctx context.Context) error {
	return t.fresh.Wait(ctx, func(v *coord.View) (bool, error) {
		p, _, err := t.readable(v)
		if errors.Is(err, errNewerPlan) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if !t.record().mayPlan(p) {
			return false, nil
		}
		names, err := t.fresh.Children(ctx, t.members().Dir)
		if err != nil {
			return false, err
		}
		ahead := t.members().order(names)
		at := slices.Index(ahead, t.hold.Node())
		v.RecheckOn(t.hold.Done())
		if at < 0 {
			return false, t.hold.Err()
		}
		for i := at - 1; i >= 0; i-- {
			data, stat, err := v.Get(ahead[i])
			if errors.Is(err, coord.ErrNoNode) {
				continue
			} else if err != nil {
				return false, err
			}
			if rec, ok := t.members().decode(ahead[i], data, stat); ok && rec.mayPlan(p) {
				return false, nil
			}
		}
		return true, nil
	})
}

// planner is the member that writes plans.
type planner struct {
	*term
	arrived map[string]string // the node under which a key that has moved is owned, as it was seen
}

// state is what a plan follows from.
type state struct {
	version int32 // of the node; -1 if there is none
	next    *Plan // or nil
}

// step waits until the plan has to change, and writes the next one.
func (p *planner) step(ctx context.Context) error {
	var s state
	var due time.Time
	err := p.fresh.Wait(ctx, func(v *coord.View) (_ bool, err error) {
		if s, err = p.read(v); err != nil || s.next == nil {
			due = time.Time{}
			return false, err
		}
		if due.IsZero() {
			due = time.Now().Add(settle)
		}
		v.RecheckAt(due)
		return !time.Now().Before(due), nil
	})
	if err != nil {
		return err
	}
	op := coord.SetOp(p.planNode(), s.next.encode(), s.version)
	if s.version < 0 {
		op = coord.CreateOp(p.planNode(), s.next.encode())
	}
	return recipe.Retry(ctx, p.client, func(ctx context.Context) error {
		_, err := p.hold.Txn(ctx, op) // names the version, so it is carried out once
		return err
	})
}

// read reads the plan, the members, and where the keys are that have moved, and
// says which plan follows.
func (p *planner) read(v *coord.View) (s state, err error) {
	plan, stat, err := p.readable(v)
	if errors.Is(err, errNewerPlan) {
		return s, errNotFirst // a member of a newer version does
	} else if err != nil {
		return s, err
	}
	there, err := p.members().look(v)
	if err != nil {
		return s, err
	}
	first := slices.IndexFunc(there, func(r record) bool { return r.mayPlan(plan) })
	if first < 0 || there[first].Node != p.node() {
		return s, errNotFirst
	}
	s.version = stat.Version
	if stat.Czxid == 0 {
		s.version = -1
	}
	base := p.base(plan, there)
	if base == nil {
		return s, nil // this member is about to be refused
	}
	m, err := p.lookAtMoves(v, base, there)
	if err != nil {
		return s, err
	}
	s.next = base.next(base.admit(there), p.self.ID, p.limits, m.pending, m.now)
	if s.next == nil && (base != plan || base.Room != p.room()) {
		s.next = base
	}
	if s.next != nil {
		s.next.Room = p.room()
	}
	return s, nil
}

// base is the plan that the next one follows from, or nil if the plan cannot
// have this member. For a plan that is gone or was written over, it is the one
// that this member knows; a plan that names nobody gets the owners of that one.
// This member's list replaces one that nobody has set and nobody follows.
func (p *planner) base(plan *Plan, there []record) *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	base := cmp.Or(plan, p.last, new(Plan))
	if len(base.Members) == 0 && p.last != nil {
		base = p.last.relist(base.list())
	}
	p.last = base
	known := p.known
	var nodes []string
	for _, r := range there {
		nodes = append(nodes, r.Node)
	}
	switch {
	case base.names(p.node()) && known.version <= base.Version, !base.conflicts(known.hash(), known.version,
		base.list().hash()):
		return base
	case known.version > base.Version, !base.isFollowed(nodes):
		return base.relist(known)
	}
	return nil
}

// moved is what the planner knows of the keys that have moved.
type moved struct {
	now     time.Time // by the ensemble's clock
	pending func(at int) bool
}

// lookAtMoves finds out which keys are still under way after a move, as far as
// the limits need that, and has the planner look again when that may have
// changed.
func (p *planner) lookAtMoves(v *coord.View, plan *Plan, there []record) (m moved, err error) {
	if !p.limits.timed() {
		return m, nil
	}
	if m.now, err = recipe.EnsembleTime(v.Context(), p.client, p.members().Dir, time.Minute); err != nil {
		return m, err
	}
	pending := map[int]bool{}
	for at, when := range plan.Moved {
		since := time.Unix(min(when, m.now.Unix()), 0)
		lookAgain := func(after time.Duration) (due bool) {
			left := since.Add(after).Sub(m.now)
			if left > 0 {
				v.RecheckAt(time.Now().Add(left))
			}
			return left <= 0
		}
		lookAgain(p.limits.cooldown)
		if p.limits.moves > 0 && !lookAgain(p.mostForAMove()) {
			pending[at] = p.isUnderWay(v, plan, at, there)
		}
	}
	m.pending = func(at int) bool { return pending[at] }
	return m, nil
}

// mostForAMove is how long a move counts: for the time that this member's
// functions may take, and a session timeout.
func (p *planner) mostForAMove() time.Duration {
	extra := p.client.Info().SessionTimeout + lastMoment
	return min(p.drain, math.MaxInt64-extra) + extra
}

// isUnderWay reports whether a key that has moved has yet to arrive: its member
// does not have it, and nobody but members does.
func (p *planner) isUnderWay(v *coord.View, plan *Plan, at int, there []record) bool {
	key := plan.Keys[at]
	to, _ := plan.Owner(at)
	if p.arrived[key] == to.Node {
		return false
	}
	line := p.Line(key)
	names, err := v.ChildrenIfAny(line.Dir)
	if err != nil {
		return false // it is that key's trouble
	}
	order := line.Order(names, p.client.Info().Dialect)
	if len(order) == 0 {
		return true
	}
	infos, err := inspect.Describe(v.Context(), p.fresh, line.Dir, order[:1])
	if err != nil || len(infos) == 0 {
		return err == nil
	}
	for _, node := range infos[0].Under {
		if slices.ContainsFunc(there, func(r record) bool { return r.Node == node }) {
			p.arrived[key] = node
			return node != to.Node
		}
	}
	return false
}
