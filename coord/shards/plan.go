package shards

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Member is a member as the plan names it.
type Member struct {
	ID      string `json:"id"`
	Node    string `json:"node,omitempty"` // the name of its node
	Weight  int    `json:"weight"`
	Zone    string `json:"zone,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Leaving bool   `json:"leaving,omitempty"`
	List    string `json:"list,omitempty"` // the hash of the list that it came with, or "" for any
}

func (m Member) equal(o Member) bool {
	return m.ID == o.ID && m.Node == o.Node && m.Weight == o.Weight && m.Zone == o.Zone && m.Leaving == o.Leaving && bytes.Equal(m.Data, o.Data)
}

func (m Member) valid() bool { return m.Weight >= 0 && m.Weight <= maxWeight }

// takes is the weight with which a member takes keys.
func (m Member) takes() int {
	if m.Leaving {
		return 0
	}
	return m.Weight
}

// Nobody is the owner of a key that the plan gives to no member.
const Nobody = -1

// Plan says which member is to own which key. Who owns a key now is another
// matter: see [Shards.Status].
type Plan struct {
	Generation int64    `json:"generation"` // grows from plan to plan
	By         string   `json:"by"`         // the ID of the planner
	Members    []Member `json:"members"`
	Ranges     int      `json:"ranges,omitempty"` // the keys are ranges of a hash
	Keys       []string `json:"keys,omitempty"`
	Owners     []int    `json:"owners"` // of each key, the place among the members, or [Nobody]
	// Moved is when keys were given to another member, by the planner's clock,
	// in Unix seconds; by the place of the key. With [MovesAtATime] or
	// [Cooldown].
	Moved map[int]int64 `json:"moved,omitempty"`
}

// Owner returns who is to own the key at a place.
func (p *Plan) Owner(at int) (Member, bool) {
	if at < 0 || p.Owners[at] == Nobody {
		return Member{}, false
	}
	return p.Members[p.Owners[at]], true
}

// Place returns the place of a key, or -1.
func (p *Plan) Place(key string) int {
	at, ok := slices.BinarySearch(p.Keys, key)
	if !ok {
		return -1
	}
	return at
}

// Of returns the places of a member's keys.
func (p *Plan) Of(node string) (places []int) {
	m := slices.IndexFunc(p.Members, func(m Member) bool { return m.Node == node })
	if m < 0 {
		return nil
	}
	for at, owner := range p.Owners {
		if owner == m {
			places = append(places, at)
		}
	}
	return places
}

func (p *Plan) names(node string) bool {
	return slices.ContainsFunc(p.Members, func(m Member) bool { return m.Node == node })
}

func (p *Plan) list() list { return list{p.Keys, p.Ranges} }

func (p *Plan) encode() []byte {
	short := *p
	if p.Ranges > 0 {
		short.Keys = nil
	}
	data, _ := json.Marshal(short) // never fails
	return data
}

// decode reads a plan, and checks what the code relies on.
func decode(data []byte) (*Plan, error) {
	p := new(Plan)
	err := json.Unmarshal(data, p)
	if err == nil && p.Ranges > 0 && p.Ranges <= maxRanges {
		p.Keys = ranges(p.Ranges)
	}
	valid := err == nil && len(p.Owners) == len(p.Keys) && slices.IsSorted(p.Keys) &&
		!slices.ContainsFunc(p.Owners, func(o int) bool { return o < Nobody || o >= len(p.Members) })
	for _, m := range p.Members {
		valid = valid && m.valid()
	}
	for at := range p.Moved {
		valid = valid && at >= 0 && at < len(p.Keys)
	}
	if !valid {
		return nil, fmt.Errorf("%w: the node has data that are no plan: %.60q", coord.ErrInvalid, data)
	}
	return p, nil
}

// relist returns the plan with another list. Keys in both keep their owner.
func (p *Plan) relist(to list, by string) *Plan {
	next := &Plan{Generation: p.Generation + 1, By: by, Members: p.Members, Ranges: to.ranges, Keys: to.keys, Owners: make([]int, len(to.keys))}
	for i, key := range to.keys {
		next.Owners[i] = Nobody
		if at := p.Place(key); at >= 0 {
			next.Owners[i] = p.Owners[at]
			next.moved(i, p.Moved[at])
		}
	}
	return next
}

func (p *Plan) moved(at int, when int64) {
	if when == 0 {
		return
	}
	if p.Moved == nil {
		p.Moved = map[int]int64{}
	}
	p.Moved[at] = when
}

// limits are what the planner keeps to.
type limits struct {
	moves    int // at a time, or 0 for any number
	cooldown time.Duration
}

// next returns the plan that follows for the members there are, or nil if the
// plan stays. done says which of the keys that were moved have arrived. It is a
// pure function. Of members with the same ID, the last counts.
func (p *Plan) next(there []Member, by string, l limits, done func(key string) bool, now time.Time) *Plan {
	members := slices.Clone(there)
	slices.Reverse(members)
	slices.SortStableFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	members = slices.CompactFunc(members, func(a, b Member) bool { return a.ID == b.ID })
	owners, zones := p.ownersAmong(members)
	hot, busy := make([]bool, len(owners)), 0
	next := &Plan{Generation: p.Generation + 1, By: by, Members: members, Ranges: p.Ranges, Keys: p.Keys}
	for at, when := range p.Moved {
		hot[at] = now.Before(time.Unix(when, 0).Add(l.cooldown))
		arrived := l.moves == 0 || owners[at] == Nobody || done(p.Keys[at])
		if !arrived {
			busy++
		}
		if hot[at] || !arrived {
			next.moved(at, when)
		}
	}
	seats := make([]seat, len(members))
	for i, m := range members {
		seats[i] = seat{m.takes(), m.Zone}
	}
	next.Owners = assign(owners, zones, seats, hot)
	if l.moves > 0 {
		next.hold(owners, max(0, l.moves-busy))
	}
	for at, owner := range next.Owners {
		if owners[at] != Nobody && owner != Nobody && owner != owners[at] && (l.moves > 0 || l.cooldown > 0) {
			next.moved(at, now.Unix())
		}
	}
	if slices.Equal(next.Owners, p.Owners) && slices.EqualFunc(next.Members, p.Members, Member.equal) {
		return nil
	}
	return next
}

// ownersAmong returns the owners as places among other members, and the zones
// that the keys come from.
func (p *Plan) ownersAmong(members []Member) (owners []int, zones []string) {
	to, from := make([]int, len(p.Members)), make([]string, len(p.Members))
	for i, m := range p.Members {
		from[i] = m.Zone
		at, there := slices.BinarySearchFunc(members, m.ID, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
		if to[i] = at; !there {
			to[i] = Nobody
		}
	}
	owners, zones = make([]int, len(p.Owners)), make([]string, len(p.Owners))
	for at, owner := range p.Owners {
		if owner == Nobody {
			owners[at] = Nobody
		} else {
			owners[at], zones[at] = to[owner], from[owner]
		}
	}
	return owners, zones
}

// hold lets no more than n keys move from the owners they have; those of
// members that leave go first.
func (p *Plan) hold(owners []int, n int) {
	for _, leaving := range []bool{true, false} {
		for at, owner := range owners {
			if owner == Nobody || p.Owners[at] == Nobody || p.Owners[at] == owner || p.Members[owner].Leaving != leaving {
				continue
			}
			if n--; n < 0 {
				p.Owners[at] = owner
			}
		}
	}
}
