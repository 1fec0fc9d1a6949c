package look

import (
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// Held is how long a contender has held. One look shows only a node's age, its
// wait included; the grant lies between the look that first saw the hold and
// the look before.
type Held struct {
	// HeldFor is the time in seconds since the grant, at most; null: it does
	// not hold, or no look saw the grant.
	HeldFor *float64 `json:"held_for"`
	// AtMost: it may be much less, since there was no look for a while before
	// the grant was seen.
	AtMost bool `json:"held_at_most,omitempty"`
}

// How far apart the looks around a grant may be for HeldFor to count as exact.
const (
	closeLooks = 3 * time.Second
	closeShare = 10 // or a tenth of that time
)

// heldSince is the Held of a grant between two instants; they are zero if the
// grant was not seen.
func heldSince(from, to time.Time) Held {
	apart := to.Sub(from)
	return Held{term.SinceThen(from), apart > max(closeLooks, time.Since(from)/closeShare)}
}

// String is h as people write it; "" if it is not known.
func (h Held) String() string {
	switch {
	case h.HeldFor == nil:
		return ""
	case h.AtMost:
		return "for at most " + term.Age(*h.HeldFor)
	}
	return "for " + term.Age(*h.HeldFor)
}

// Sightings are what earlier looks have shown, from which later looks tell
// since when a contender holds. If a look finds it holding, and the look before
// found it waiting or not yet there, it was granted in between.
type Sightings struct {
	mu     sync.Mutex
	last   time.Time // when the look before began; zero: there was none
	before map[claimID]sighting
	now    map[claimID]sighting
}

// claimID is one claim. A node's name alone is not enough: slots and groups use
// names again.
type claimID struct {
	node  string
	token int64 // the node's czxid; 0: it was not read
}

// sighting is what a look has shown of one claim.
type sighting struct {
	holds    bool
	from, to time.Time // it was granted between these; zero: the grant was not seen
}

// Look begins a look, and returns what ends it.
func (s *Sightings) Look() (over func()) {
	s.mu.Lock()
	begun := time.Now()
	s.now = map[claimID]sighting{}
	return func() {
		s.last, s.before = begun, s.now
		s.mu.Unlock()
	}
}

// See notes a claim, and returns for how long it holds. Its token is 0, and its
// age nil, where they are not known.
func (s *Sightings) See(node string, token int64, holds bool, age *float64) Held {
	was, seen := s.before[claimID{node, token}]
	if !seen {
		was, seen = s.before[claimID{node: node}] // it was not read then
	}
	is, now := sighting{holds: holds}, time.Now()
	switch {
	case holds && seen && was.holds:
		is = was
	case holds && seen:
		is.from, is.to = s.last, now
	case holds && age != nil && !s.last.IsZero():
		if made := now.Add(-time.Duration(*age * float64(time.Second))); made.After(s.last) {
			is.from, is.to = made, now
		}
	}
	s.now[claimID{node, token}] = is
	return heldSince(is.from, is.to)
}

// Date notes how long each holder of a report has held.
func (s *Sightings) Date(r *Report) {
	for i, c := range r.Contenders {
		r.Contenders[i].Held = s.See(c.Node, c.Token, c.Holds, c.Age)
	}
}

// Date notes how long each holder has held, as far as earlier looks have shown
// it.
func (s *Survey) Date(seen *Sightings) {
	defer seen.Look()()
	for i := range s.Recipes {
		seen.Date(&s.Recipes[i])
	}
}
