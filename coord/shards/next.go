package shards

import (
	"cmp"
	"slices"
	"time"
)

// limits are what the planner keeps to.
type limits struct {
	moves    int // at a time, or 0 for any number
	cooldown time.Duration
}

// timed reports whether it matters when keys move.
func (l limits) timed() bool { return l.moves > 0 || l.cooldown > 0 }

// next returns the plan that follows for the members there are, or nil if the
// plan stays. pending says which keys are still under way after a move, and now
// is the ensemble's time. It is a pure function. Of members with the same ID,
// the last counts.
func (p *Plan) next(there []Member, by string, l limits, pending func(at int) bool, now time.Time) *Plan {
	members := slices.Clone(there)
	slices.Reverse(members)
	slices.SortStableFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	members = slices.CompactFunc(members, func(a, b Member) bool { return a.ID == b.ID })
	owners, zones := p.ownersAmong(members)
	next := *p
	next.Format, next.Generation, next.By, next.Members, next.Moved = planFormat, p.Generation+1, by, members, nil
	hot, busy, mended := make([]bool, len(owners)), 0, false
	for at, when := range p.Moved {
		if when > now.Unix() { // by a clock that was wrong
			when, mended = now.Unix(), true
		}
		hot[at] = now.Before(time.Unix(when, 0).Add(l.cooldown))
		underWay := l.moves > 0 && owners[at] != Nobody && pending(at)
		if underWay {
			busy++
		}
		if hot[at] || underWay {
			next.moved(at, when)
		}
	}
	next.Owners = assign(owners, zones, p.seats(members), hot)
	if l.moves > 0 {
		next.hold(owners, max(0, l.moves-busy))
	}
	for at, owner := range next.Owners {
		if owners[at] != Nobody && owner != Nobody && owner != owners[at] && l.timed() {
			next.moved(at, now.Unix())
		}
	}
	if !mended && slices.Equal(next.Owners, p.Owners) && slices.EqualFunc(next.Members, p.Members, Member.equal) {
		return nil
	}
	return &next
}

// seats are the members as assign sees them.
func (p *Plan) seats(members []Member) []seat {
	seats := make([]seat, len(members))
	for i, m := range members {
		seats[i] = seat{weight: m.takes(), zone: m.Zone}
		for key := range m.stuck {
			if at := p.Place(key); at >= 0 {
				seats[i].never = append(seats[i].never, at)
			}
		}
	}
	return seats
}

// hold lets no more than n keys move from the owners they have; keys of members
// that leave go first.
func (p *Plan) hold(owners []int, n int) {
	for _, leaving := range []bool{true, false} {
		for at, owner := range owners {
			if owner == Nobody || p.Owners[at] == Nobody || p.Owners[at] == owner || p.Members[owner].Leaving != leaving {
				continue
			}
			n--
			if n < 0 {
				p.Owners[at] = owner
			}
		}
	}
}
