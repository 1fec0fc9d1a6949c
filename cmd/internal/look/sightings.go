package look

import (
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// Sightings are what earlier looks have shown, by which later ones tell since
// when a contender holds: a node tells its own age only, its wait included. A
// look that finds it holding where the one before found it waiting, or not yet
// there, has seen the grant.
type Sightings struct {
	mu     sync.Mutex
	last   time.Time // of the look before; zero: there was none
	before map[string]sighting
	now    map[string]sighting
}

// sighting is what a look has shown of one node.
type sighting struct {
	holds   bool
	granted time.Time // zero: not seen
}

// Look begins a look, and returns what ends it.
func (s *Sightings) Look() (over func()) {
	s.mu.Lock()
	begun := time.Now()
	s.now = map[string]sighting{}
	return func() {
		s.last, s.before = begun, s.now
		s.mu.Unlock()
	}
}

// See notes a node, and returns for how long it holds, in seconds, or nil if
// that is not known or it does not. Its age is nil where that is not known.
func (s *Sightings) See(node string, holds bool, age *float64) *float64 {
	was, seen := s.before[node]
	is := sighting{holds: holds}
	switch {
	case holds && was.holds:
		is.granted = was.granted
	case holds && seen:
		is.granted = time.Now()
	case holds && age != nil && !s.last.IsZero():
		if made := time.Now().Add(-time.Duration(*age * float64(time.Second))); made.After(s.last) {
			is.granted = made
		}
	}
	s.now[node] = is
	return term.SinceThen(is.granted)
}

// Date notes how long each holder of a report has held.
func (s *Sightings) Date(r *Report) {
	for i, c := range r.Contenders {
		r.Contenders[i].HeldFor = s.See(c.Node, c.Holds, c.Age)
	}
}
