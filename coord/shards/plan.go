package shards

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

	stuck map[string]bool // keys that it cannot take: their functions have not returned
}

func (m Member) equal(o Member) bool {
	return m.ID == o.ID && m.Node == o.Node && m.Weight == o.Weight && m.Zone == o.Zone && m.Leaving == o.Leaving &&
		bytes.Equal(m.Data, o.Data)
}

// takes returns the weight with which a member takes keys.
func (m Member) takes() int {
	if m.Leaving {
		return 0
	}
	return m.Weight
}

// size bounds the bytes that a member takes in a plan.
func (m Member) size() int {
	m.Leaving = true
	data, _ := json.Marshal(m) // never fails
	return len(data) + len(",")
}

// Nobody is the owner of a key that the plan gives to no member.
const Nobody = -1

// planFormat is the format of plans that this version writes, and the newest
// that it reads.
const planFormat = 1

// Plan says which member is to own which key. Who owns a key now is another
// matter: see [Shards.Status].
type Plan struct {
	Format     int      `json:"format"`
	Generation int64    `json:"generation"`        // grows from plan to plan
	By         string   `json:"by"`                // the ID of the planner
	Room       int      `json:"room"`              // bytes of the largest plan that the planner can write
	Version    int64    `json:"version,omitempty"` // of the list of keys; 0 if nobody has set it
	Ranges     int      `json:"ranges,omitempty"`  // the keys are ranges of a hash
	Keys       []string `json:"keys,omitempty"`
	Members    []Member `json:"members"`
	Owners     []int    `json:"owners"` // for each key, the index of its owner in Members, or [Nobody]
	// Moved maps a key's place to the time when the key was last given to
	// another member, in Unix seconds by the ensemble's clock. It is kept with
	// [MovesAtATime] or [Cooldown].
	Moved map[int]int64 `json:"-"`
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

func (p *Plan) list() list { return list{p.Keys, p.Ranges, p.Version} }

// planData is a plan as its node has it.
type planData struct {
	*Plan
	Moved *movedData `json:"moved,omitempty"`
}

// movedData is [Plan.Moved] in one byte for each key, however long the
// cooldown. Times are rounded up to a multiple of Step, a power of two;
// rounding a time to the same step again does not change it.
type movedData struct {
	First int64  `json:"first"` // in Unix seconds, a multiple of the step
	Step  int64  `json:"step"`  // in seconds
	Keys  string `json:"keys"`  // for each key a digit, the steps since First, or '-'
}

const (
	movedDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	notMoved    = '-'
)

func encodeMoved(moved map[int]int64, keys int) *movedData {
	if len(moved) == 0 {
		return nil
	}
	var times []int64
	for _, when := range moved {
		times = append(times, when)
	}
	first, last := slices.Min(times), slices.Max(times)
	d := &movedData{Step: 1}
	steps := func(to int64) int64 { return (to - d.First + d.Step - 1) / d.Step }
	for d.First = first; steps(last) >= int64(len(movedDigits)); d.First = (first + d.Step - 1) / d.Step * d.Step {
		d.Step *= 2
	}
	text := bytes.Repeat([]byte{notMoved}, keys)
	for at, when := range moved {
		text[at] = movedDigits[steps(when)]
	}
	d.Keys = string(text)
	return d
}

func (d *movedData) decode(keys int) (moved map[int]int64, ok bool) {
	if d == nil {
		return nil, true
	}
	moved, ok = map[int]int64{}, len(d.Keys) == keys && d.Step > 0 && d.Step < 1<<32 && d.First >= 0 && d.First < 1<<40
	for at := 0; ok && at < keys; at++ {
		steps := strings.IndexByte(movedDigits, d.Keys[at])
		if steps >= 0 {
			moved[at] = d.First + int64(steps)*d.Step
		}
		ok = steps >= 0 || d.Keys[at] == notMoved
	}
	return moved, ok
}

func (p *Plan) encode() []byte {
	short := *p
	if p.Ranges > 0 {
		short.Keys = nil
	}
	data, _ := json.Marshal(planData{&short, encodeMoved(p.Moved, len(p.Keys))}) // never fails
	return data
}

var (
	// errNoPlan: what the node has is no plan. The planner writes it anew.
	errNoPlan = errors.New("the node has data that are no plan")
	// errNewerPlan: a newer version of this module has written the plan.
	errNewerPlan = errors.New("the plan has a newer format")
)

// decode reads a plan, and checks what the code relies on.
func decode(data []byte) (*Plan, error) {
	p := new(Plan)
	var format struct{ Format int }
	err := json.Unmarshal(data, &format)
	if err == nil && format.Format > planFormat {
		return nil, fmt.Errorf(
			"%w: %d, and this version reads %d; upgrade this program, which takes and hands over no keys until then",
			errNewerPlan, format.Format, planFormat)
	}
	read := planData{Plan: p}
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err == nil && p.Ranges > 0 && p.Ranges <= maxRanges {
		p.Keys = ranges(p.Ranges)
	}
	valid := err == nil && p.Format == planFormat && len(p.Keys) > 0 && p.Keys[0] != "" && len(p.Owners) == len(p.Keys) &&
		p.Version >= 0 &&
		!slices.ContainsFunc(p.Owners, func(o int) bool { return o < Nobody || o >= len(p.Members) })
	for at := 1; valid && at < len(p.Keys); at++ {
		valid = p.Keys[at-1] < p.Keys[at]
	}
	for _, m := range p.Members {
		valid = valid && m.valid()
	}
	if valid {
		p.Moved, valid = read.Moved.decode(len(p.Keys))
	}
	if !valid {
		return nil, fmt.Errorf("%w: %.60q", errNoPlan, data)
	}
	return p, nil
}

func (m Member) valid() bool { return m.ID != "" && m.Weight >= 0 && m.Weight <= maxWeight }

// size bounds the bytes of a list in a plan.
func (l list) size() (n int) {
	if l.ranges > 0 {
		return 0
	}
	for _, key := range l.keys {
		n += len(`"",`) + len(key)
		for _, c := range []byte(key) {
			switch {
			case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&':
				n += len(`\u0000`) - 1
			case c == 0xE2: // may begin U+2028
				n += len(`\u2028`) - 3
			}
		}
	}
	return n
}

// bound bounds the bytes of all plans of this list for these members, whatever
// they own, and whatever has moved.
func (p *Plan) bound(members []Member) int {
	const others = 500 // fields
	owner := max(len("-1,"), len(strconv.Itoa(len(members)))+len(","))
	size := others + p.list().size() + len(p.Keys)*(owner+len("-"))
	for _, m := range members {
		size += m.size()
	}
	return size
}

// hasRoom returns an error if a plan for the members might not fit into the
// node.
func (p *Plan) hasRoom(members []Member) error {
	if size := p.bound(members); p.Room > 0 && size > p.Room {
		return fmt.Errorf("%w: the plan of %d keys for %d members may take %d bytes, and one node has room for %d; "+
			"use fewer or shorter keys, Ranges, or less Data", coord.ErrTooLarge, len(p.Keys), len(members), size, p.Room)
	}
	return nil
}

// conflicts reports whether the plan excludes a member that knows a list with
// this hash and version; of is the hash of the plan's list. A member that knows
// no list, or an older one, follows the plan's.
func (p *Plan) conflicts(hash string, version int64, of string) bool {
	return hash != "" && version >= p.Version && hash != of
}

// isFollowed reports whether the list is set, or the plan names the node of a
// member that is there. If neither, the planner may replace the list.
func (p *Plan) isFollowed(there []string) bool {
	return p.Version > 0 || slices.ContainsFunc(there, p.names)
}

// admit returns the members among the records: all that the plan names, and
// newcomers as far as the plan has room. No member has to end to make room for
// a newcomer.
func (p *Plan) admit(there []record) (members []Member) {
	hash, in := p.list().hash(), make([]*Member, len(there))
	among := func() (all []Member) {
		for _, m := range in {
			if m != nil {
				all = append(all, *m)
			}
		}
		return all
	}
	for i := range there {
		at := slices.IndexFunc(p.Members, func(m Member) bool { return m.Node == there[i].Node })
		in[i] = &there[i].Member
		if at < 0 {
			in[i] = nil
		} else if there[i].ID == "" { // somebody has written over it
			in[i] = &p.Members[at]
		}
	}
	for i := range there {
		r := &there[i]
		if in[i] != nil || r.ID == "" || p.conflicts(r.List, r.Version, hash) {
			continue
		}
		others := slices.DeleteFunc(among(), func(m Member) bool { return m.ID == r.ID })
		if p.hasRoom(append(others, r.Member)) == nil {
			in[i] = &r.Member
		}
	}
	return among()
}

// relist returns the plan with another list. Keys in both keep their owner.
func (p *Plan) relist(to list) *Plan {
	next := *p
	next.Format, next.Generation = planFormat, p.Generation+1
	next.Version, next.Ranges, next.Keys, next.Owners, next.Moved = to.version, to.ranges, to.keys, make([]int,
		len(to.keys)), nil
	for i, key := range to.keys {
		next.Owners[i] = Nobody
		if at := p.Place(key); at >= 0 {
			next.Owners[i] = p.Owners[at]
			next.moved(i, p.Moved[at])
		}
	}
	return &next
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

// ownersAmong returns the owners as places among other members, and the zones
// that the keys come from.
func (p *Plan) ownersAmong(members []Member) (owners []int, zones []string) {
	to, from := make([]int, len(p.Members)), make([]string, len(p.Members))
	for i, m := range p.Members {
		from[i] = m.Zone
		at, there := slices.BinarySearchFunc(members, m.ID, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
		to[i] = at
		if !there {
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
