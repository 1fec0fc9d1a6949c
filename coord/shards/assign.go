package shards

import (
	"cmp"
	"slices"
)

// seat is a member as assign sees it.
type seat struct {
	weight int
	zone   string
	never  []int // keys that it cannot take
}

func (s seat) canTake(at int) bool { return s.weight > 0 && !slices.Contains(s.never, at) }

// assign distributes keys: it returns the seat of each, or [Nobody] if no seat
// can take it. A seat gets its share by weight, rounded down or up; so with
// equal weights the numbers of two seats' keys differ by at most one, unless
// hot keys, which must not leave a seat with a weight, or keys that some seats
// cannot take, prevent that. As few keys move as that allows. A key that must
// move takes a seat of its own zone where one has room.
func assign(owners []int, zones []string, seats []seat, hot []bool) []int {
	a := assignment{want: slices.Clone(owners), zones: zones, seats: seats, room: quotas(owners, seats)}
	never := map[int]bool{}
	for _, s := range seats {
		for _, at := range s.never {
			never[at] = true
		}
	}
	placed := func(at int) bool { return never[at] || owners[at] != Nobody && hot[at] && seats[owners[at]].weight > 0 }
	for at, owner := range owners {
		switch {
		case !placed(at):
		case owner != Nobody && seats[owner].canTake(at):
			a.room[owner]--
		default:
			a.place(at, func(seat int) bool { return seats[seat].canTake(at) })
		}
	}
	var loose []int
	for at, owner := range owners {
		switch {
		case placed(at):
		case owner != Nobody && a.room[owner] > 0:
			a.room[owner]--
		default:
			loose = append(loose, at)
		}
	}
	for _, at := range loose {
		a.place(at, func(seat int) bool { return a.room[seat] > 0 })
	}
	return a.want
}

type assignment struct {
	want  []int
	zones []string
	seats []seat
	room  []int // of each seat
}

// place gives a key to the best seat that may have it.
func (a *assignment) place(at int, may func(seat int) bool) {
	best := Nobody
	for i, s := range a.seats {
		if may(i) &&
			(best == Nobody || closer(s.zone == a.zones[at], a.room[i], a.seats[best].zone == a.zones[at], a.room[best])) {
			best = i
		}
	}
	a.want[at] = best
	if best != Nobody {
		a.room[best]--
	}
}

// closer reports whether a seat is better for a key than another: in the key's
// own zone, or with more room.
func closer(near bool, room int, otherNear bool, otherRoom int) bool {
	if near != otherNear {
		return near
	}
	return room > otherRoom
}

// quotas returns how many keys each seat is to have: its share by weight,
// rounded up for seats that have more than the rounded share already, and then
// for the largest fractions, as far as the keys go.
func quotas(owners []int, seats []seat) []int {
	have, quota, rest := make([]int, len(seats)), make([]int, len(seats)), make([]int, len(seats))
	for _, owner := range owners {
		if owner != Nobody {
			have[owner]++
		}
	}
	sum := 0
	for _, s := range seats {
		sum += s.weight
	}
	if sum == 0 {
		return quota
	}
	left := len(owners)
	var byClaim []int
	for i, s := range seats {
		quota[i], rest[i] = len(owners)*s.weight/sum, len(owners)*s.weight%sum
		left -= quota[i]
		if rest[i] > 0 {
			byClaim = append(byClaim, i)
		}
	}
	slices.SortStableFunc(byClaim, func(a, b int) int {
		if more, other := have[a] > quota[a], have[b] > quota[b]; more != other {
			if more {
				return -1
			}
			return 1
		}
		return cmp.Compare(rest[b], rest[a])
	})
	for _, i := range byClaim[:left] {
		quota[i]++
	}
	return quota
}
