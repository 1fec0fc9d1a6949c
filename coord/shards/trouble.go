package shards

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Life is what a key goes through.
type Life string

const (
	LifeUnowned  Life = "unowned"  // the plan gives it to nobody
	LifeWaiting  Life = "waiting"  // for its former owner, or for what keeps its member from having it
	LifeOwned    Life = "owned"    // its function runs, or has returned nil
	LifeDraining Life = "draining" // its owner was asked to let it go
	LifeFailing  Life = "failing"  // its function has failed, and is called again
	LifeGivenUp  Life = "given up" // its function has not returned in time
)

// attempt is a failed attempt.
type attempt struct {
	err   error
	count int           // of attempts that have failed, one after the other
	again time.Duration // until the next
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// backoff is the pauses between attempts that fail. They begin anew after an
// attempt that has lasted for longer than the longest.
type backoff struct{ count int }

func (b *backoff) failed(err error, lasted time.Duration) attempt {
	if lasted > mostPause {
		b.count = 0
	}
	b.count++
	return attempt{err, b.count, min(mostPause, firstPause<<min(b.count-1, 10))}
}

// trouble is what is wrong with a key.
type trouble struct {
	attempt
	life  Life
	since time.Time
	next  time.Time // the next attempt
}

// trouble notes what is wrong with a key, and tells of it.
func (r *run) trouble(key string, life Life, kind string, a attempt) {
	now := time.Now()
	tr := &trouble{attempt: a, life: life, since: now, next: now.Add(a.again)}
	r.mu.Lock()
	if was := r.troubles[key]; was != nil && was.life == life {
		tr.since = was.since
	}
	r.troubles[key] = tr
	r.mu.Unlock()
	r.changed()
	r.tell(Event{kind, key, a.err, a.count, a.again})
}

// well notes that nothing is wrong with a key any more.
func (r *run) well(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.troubles[key] != nil {
		delete(r.troubles, key)
		r.changed()
	}
}

// toldTrouble is a key in the record of a member. Its times count from the
// writing of the record.
type toldTrouble struct {
	Key   string        `json:"key"`
	Life  Life          `json:"life"`
	Count int           `json:"count,omitempty"`
	Error string        `json:"error,omitempty"`
	For   time.Duration `json:"for,omitempty"`   // in ns
	Again time.Duration `json:"again,omitempty"` // in ns
}

const (
	mostTold  = 32 << 10 // bytes of the keys that a record tells of, about
	mostError = 200      // bytes of an error
)

// told is what a member's record says about its keys. Keys that it cannot take
// come first.
func told(troubles map[string]*trouble) (all []toldTrouble) {
	now := time.Now()
	for key, t := range troubles {
		text := t.err.Error()
		for n := mostError; len(text) > mostError || !utf8.ValidString(text); n-- {
			text = text[:min(n, len(text))]
		}
		told := toldTrouble{Key: key, Life: t.life, Count: t.count, Error: text, For: now.Sub(t.since)}
		if t.again > 0 {
			told.Again = max(0, t.next.Sub(now))
		}
		all = append(all, told)
	}
	slices.SortFunc(all, func(a, b toldTrouble) int {
		if (a.Life == LifeGivenUp) != (b.Life == LifeGivenUp) {
			if a.Life == LifeGivenUp {
				return -1
			}
			return 1
		}
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	size := 0
	for i, t := range all {
		size += 100 + len(t.Key) + len(t.Error)
		if size > mostTold {
			return all[:i]
		}
	}
	return all
}

// notReturned returns an error if functions have not returned.
func (r *run) notReturned() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for key, t := range r.troubles {
		if t.life == LifeGivenUp {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d functions have not returned, such as the one of %q", ErrDrainTimeout, len(keys),
		slices.Min(keys))
}
