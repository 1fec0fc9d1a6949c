package soak

import (
	"cmp"
	"slices"
	"sync"
)

// fence keeps what transactions wrote, by the servers' own order.
type fence struct {
	mu     sync.Mutex
	writes map[string][]written
}

type written struct{ zxid, token int64 }

func newFence() *fence { return &fence{writes: map[string][]written{}} }

func (f *fence) wrote(place string, zxid, token int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[place] = append(f.writes[place], written{zxid, token})
}

// stale counts writes that came after one of a later holder.
func (f *fence) stale() (total, stale int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.writes {
		slices.SortFunc(all, func(a, b written) int { return cmp.Compare(a.zxid, b.zxid) })
		for i, w := range all {
			total++
			if i > 0 && w.token < all[i-1].token {
				stale++
			}
		}
	}
	return total, stale
}
