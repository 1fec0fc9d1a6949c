package shards

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
)

// record is what the node of a member says.
type record struct {
	Format int `json:"format"` // the newest of a plan that it reads
	Member
	List    string        `json:"list,omitempty"`         // the hash of the list that it knows, "" if it knows none
	Version int64         `json:"list_version,omitempty"` // of the list
	Keys    []toldTrouble `json:"keys,omitempty"`         // that something is wrong with

	written coord.Stat
}

// members is the line of the members, in which the first plans.
type members struct {
	coord.Line
	dialect coord.Dialect
}

func (s *Shards) members() members {
	return members{coord.Line{Dir: s.path + "/members", Kinds: []string{"member"}}, s.client.Info().Dialect}
}

// order are the paths of the members among the nodes of these names.
func (m members) order(names []string) (paths []string) {
	for _, c := range m.Order(names, m.dialect) {
		paths = append(paths, m.Dir+"/"+c.Name)
	}
	return paths
}

// decode reads a record. A node without a record, such as one that somebody has
// written over, has no ID. A node that belongs to no session is no member's,
// whatever its name.
func (members) decode(path string, data []byte, stat coord.Stat) (rec record, ok bool) {
	if json.Unmarshal(data, &rec) != nil || !rec.valid() {
		rec = record{}
	}
	rec.Node, rec.written = lastPart(path), stat
	for _, key := range rec.Keys {
		if key.Life == LifeGivenUp {
			if rec.stuck == nil {
				rec.stuck = map[string]bool{}
			}
			rec.stuck[key.Key] = true
		}
	}
	return rec, stat.Owner != 0
}

// mayPlan reports whether a member that is there can write the next plan: it
// understands the one that there is, or knows a list if there is none.
func (r record) mayPlan(p *Plan) bool {
	return r.ID != "" && r.Format >= planFormat && (p != nil || r.List != "")
}

// look reads the records of all members, in their order, and watches them.
func (m members) look(v *coord.View) (all []record, err error) {
	names, err := v.ChildrenIfAny(m.Dir)
	if err != nil {
		return nil, err
	}
	paths := m.order(names)
	v.Prefetch(paths...)
	for _, path := range paths {
		data, stat, err := v.Get(path)
		if errors.Is(err, coord.ErrNoNode) {
			continue
		} else if err != nil {
			return nil, err
		}
		if rec, ok := m.decode(path, data, stat); ok {
			all = append(all, rec)
		}
	}
	return all, nil
}

// read is look without a watch on what changes later.
func (m members) read(ctx context.Context, c *coord.Client) (all []record, err error) {
	err = c.Wait(ctx, func(v *coord.View) (bool, error) {
		all, err = m.look(v)
		return true, err
	})
	return all, err
}
