package history

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Write is one addition to a counter by a transaction of an exclusive holder.
type Write struct{ Zxid, Token, Value int64 }

// Fence keeps what exclusive holders wrote by transactions, by the servers' own
// order. It is safe for concurrent use.
type Fence struct {
	mu     sync.Mutex
	writes map[string][]Write
}

// Wrote adds a write.
func (f *Fence) Wrote(key string, w Write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writes == nil {
		f.writes = map[string][]Write{}
	}
	f.writes[key] = append(f.writes[key], w)
}

// Stale counts writes, and describes those that came after one of a later
// holder, or undid another.
func (f *Fence) Stale() (total int, stale []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, all := range f.writes {
		slices.SortFunc(all, func(a, b Write) int { return cmp.Compare(a.Zxid, b.Zxid) })
		total += len(all)
		for i := 1; i < len(all); i++ {
			if before, w := all[i-1], all[i]; w.Token < before.Token || w.Value <= before.Value {
				stale = append(stale, fmt.Sprintf("%s: %+v was followed by %+v", key, before, w))
			}
		}
	}
	return total, stale
}
