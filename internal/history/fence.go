package history

import (
	"cmp"
	"slices"
	"sync"
)

// Fence keeps what exclusive holders wrote by transactions, by the servers' own
// order. It is safe for concurrent use.
type Fence struct {
	mu     sync.Mutex
	writes map[string][]written
}

type written struct{ zxid, token int64 }

// Wrote takes a write in: by the holder with the token, carried out as zxid.
func (f *Fence) Wrote(key string, zxid, token int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes == nil {
		f.writes = map[string][]written{}
	}
	f.writes[key] = append(f.writes[key], written{zxid, token})
}

// Stale counts writes, and those that came after one of a later holder.
func (f *Fence) Stale() (total, stale int) {
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
