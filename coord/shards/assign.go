package shards

import (
	"cmp"
	"slices"
)

// seat is a member as assign sees it.
type seat struct {
	weight int
	zone   string
}

// assign distributes keys: it returns the seat of each, or [Nobody] if no seat
// has a weight. A seat gets its share by weight, rounded down or up; so with
// equal weights the numbers of two seats' keys differ by at most one, unless
// hot keys, which must not leave a seat with a weight, are in the way. As few
// keys move as that allows. A key that must move takes a seat of its own zone
// where one has room.
func assign(owners []int, zones []string, seats []seat, hot []bool) []int {
	want := slices.Clone(owners)
	room := quotas(owners, seats)
	for at, owner := range want {
		if owner != Nobody && hot[at] && seats[owner].weight > 0 {
			room[owner]--
		}
	}
	var loose []int
	for at, owner := range want {
		switch {
		case owner == Nobody:
			loose = append(loose, at)
		case hot[at] && seats[owner].weight > 0:
		case room[owner] > 0:
			room[owner]--
		default:
			loose = append(loose, at)
		}
	}
	for _, at := range loose {
		zone := zones[at]
		best := Nobody
		for i, s := range seats {
			if room[i] > 0 && (best == Nobody || closer(s.zone == zone, room[i], seats[best].zone == zone, room[best])) {
				best = i
			}
		}
		if want[at] = best; best != Nobody {
			room[best]--
		}
	}
	return want
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
// rounded up for those that have more than the rounded share already, and then
// for those with the largest fractions, as far as the keys go.
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
