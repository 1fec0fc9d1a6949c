package look

import (
	"fmt"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// Situation is what a task waits for, as one look shows it. A look costs a few
// requests, however many wait.
type Situation struct {
	Text   string         // who holds, or how many have come
	Others int            // others that wait in the same line
	place  int            // in the line, from 1; 0: none
	Key    string         // changes when there is news
	Over   bool           // our turn has come
	Fields map[string]any // for JSON
}

// String is the message for a waiter, or for a task that has given up.
func (s Situation) String() string {
	switch {
	case s.place > 0:
		return fmt.Sprintf("%s; place %d in the line", s.Text, s.place)
	case s.Others > 0:
		return fmt.Sprintf("%s; %s", s.Text, term.Plural(s.Others, "other waits", "others wait"))
	}
	return s.Text
}

// PlaceFirst is String with the place first, for a line that may be cut.
func (s Situation) PlaceFirst() string {
	if s.place > 0 {
		return fmt.Sprintf("place %d in the line; %s", s.place, s.Text)
	}
	return s.String()
}

// WithoutPlace is the situation of a task that has given up its place.
func (s Situation) WithoutPlace() Situation {
	s.place = 0
	delete(s.Fields, "place")
	return s
}

// StandIn finds this process's place in a line that begins behind so many
// others.
func (s *Situation) StandIn(line []coord.Contender, before int, own Names) {
	s.Others = len(line)
	for i, c := range line {
		if own[c.Name] {
			s.place = before + i + 1
			s.Fields["place"] = s.place
			s.Key += fmt.Sprint(s.place)
			s.Others--
		}
	}
	s.Fields["waiting"] = s.Others
}

// Names are names of nodes, without their directory.
type Names map[string]bool

// HeldBy names the first holders, and says how many more there are.
func HeldBy(first []Contender, count int) string {
	if count == 0 {
		return "held by nobody"
	}
	var all []string
	for _, c := range first {
		all = append(all, fmt.Sprintf("%s, %s", c.Who(), c.Since()))
	}
	if more := count - len(first); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return "held by " + strings.Join(all, "; ")
}
