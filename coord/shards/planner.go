package shards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// settle is how long the planner waits after a change for others that belong to
// it, before it writes a plan.
const settle = 100 * time.Millisecond

// planner is the first member of the line.
type planner struct {
	*term
	last    *Plan             // as it was read last
	arrived map[string]string // the node under which a key that was moved is owned, as it was seen
}

// state is what a plan follows from.
type state struct {
	plan    *Plan // or nil
	version int32 // of its node
	next    *Plan // or nil
}

// lead waits until the member is first in line, and writes plans from then on.
func (t *term) lead() error {
	err := t.fresh.Wait(t.ctx, func(v *coord.View) (bool, error) {
		names, err := t.fresh.Children(t.ctx, t.members().Dir)
		if err != nil {
			return false, err
		}
		return t.isFirst(v, names)
	})
	t.mu.Lock()
	p := &planner{term: t, last: t.plan, arrived: map[string]string{}}
	t.mu.Unlock()
	for err == nil {
		if err = p.step(); errors.Is(err, coord.ErrBadVersion) || errors.Is(err, coord.ErrNodeExists) || errors.Is(err, coord.ErrNoNode) {
			err = t.admit() // somebody else has changed the plan
		}
	}
	return err
}

// step waits until another plan is to be written, and writes it.
func (p *planner) step() error {
	var s state
	var due time.Time
	err := p.fresh.Wait(p.ctx, func(v *coord.View) (_ bool, err error) {
		if s, err = p.read(v); err != nil || s.next == nil {
			due = time.Time{}
			return false, err
		}
		if due.IsZero() {
			due = time.Now().Add(settle)
		}
		v.At(due)
		return !time.Now().Before(due), nil
	})
	if err != nil {
		return err
	}
	op := coord.SetOp(p.planNode(), s.next.encode(), s.version)
	if s.plan == nil {
		op = coord.CreateOp(p.planNode(), s.next.encode())
	}
	err = p.client.Retry(p.ctx, func(ctx context.Context) error {
		_, err := p.hold.Txn(ctx, op) // names the version, so it is carried out once
		return err
	})
	if err == nil {
		p.admitted = true
	}
	return err
}

// read reads the members, the plan, and where the keys are that were moved, and
// says which plan follows.
func (p *planner) read(v *coord.View) (s state, err error) {
	plan, stat, err := p.look(v)
	if err != nil {
		return s, err
	}
	s = state{plan: plan, version: stat.Version}
	there, err := p.lookAtMembers(v, plan)
	if err != nil {
		return s, err
	}
	base := cmp.Or(plan, p.last, new(Plan)) // somebody may have deleted the plan
	if p.last = base; len(base.Keys) == 0 || !p.admitted && p.list.keys != nil && base.list().hash() != p.list.hash() {
		base = base.relist(p.list, p.self.ID)
	}
	done, err := p.lookAtMoves(v, base)
	if err != nil {
		return s, err
	}
	now := time.Now()
	for _, when := range base.Moved {
		if cool := time.Unix(when, 0).Add(p.limits.cooldown); cool.After(now) {
			v.At(cool)
		}
	}
	if s.next = base.next(there, p.self.ID, p.limits, done, now); s.next == nil && base != plan {
		s.next = base
	}
	return s, nil
}

// lookAtMembers reads who is there and may own keys of the plan: all whose list
// is the plan's, or who follow it already.
func (s *Shards) lookAtMembers(v *coord.View, plan *Plan) (there []Member, err error) {
	names, err := v.Dir(s.members().Dir)
	if err != nil {
		return nil, err
	}
	line, paths := s.members().Order(names, s.client.Dialect()), []string{}
	for _, c := range line {
		paths = append(paths, s.members().Dir+"/"+c.Name)
	}
	v.Ahead(paths...)
	for i, c := range line {
		data, _, err := v.Get(paths[i])
		if errors.Is(err, coord.ErrNoNode) {
			continue
		} else if err != nil {
			return nil, err
		}
		if m, ok := s.member(c.Name, data, plan); ok {
			there = append(there, m)
		}
	}
	return there, nil
}

// member reads a member's record. One that somebody has written over is known
// by the plan.
func (s *Shards) member(node string, data []byte, plan *Plan) (m Member, ok bool) {
	known := -1
	if plan != nil {
		known = slices.IndexFunc(plan.Members, func(m Member) bool { return m.Node == node })
	}
	if json.Unmarshal(data, &m) != nil || m.ID == "" || !m.valid() {
		if known < 0 {
			return m, false
		}
		return plan.Members[known], true
	}
	wanted := s.list.hash()
	if plan != nil {
		wanted = plan.list().hash()
	}
	ok = known >= 0 || m.List == "" || m.List == wanted
	m.Node, m.List = node, ""
	return m, ok
}

// lookAtMoves returns which of the keys that were moved have arrived, as far as
// the limits need that.
func (p *planner) lookAtMoves(v *coord.View, plan *Plan) (done func(key string) bool, err error) {
	done = func(key string) bool {
		m, named := plan.Owner(plan.Place(key))
		return named && p.arrived[key] == m.Node
	}
	if p.limits.moves == 0 {
		return done, nil
	}
	for at := range plan.Moved {
		key := plan.Keys[at]
		if done(key) {
			continue
		}
		line := p.Line(key)
		names, err := v.Dir(line.Dir)
		if err != nil {
			return nil, err
		}
		order := line.Order(names, p.client.Dialect())
		if len(order) == 0 {
			continue
		}
		infos, err := inspect.Describe(v.Context(), p.fresh, line.Dir, order[:1])
		if err != nil {
			return nil, err
		}
		for _, first := range infos {
			p.arrived[key] = plan.holder(first).Node
		}
	}
	return done, nil
}
