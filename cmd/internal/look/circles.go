package look

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// party is a contender of a lock or a semaphore, and what it needs before it
// goes: a waiter needs others to go; a holder needs the claims made under it to
// be granted.
type party struct {
	Contender
	Path     string
	waits    bool
	Others   []int // the parties that it waits for
	anyOf    bool  // one of Others is enough
	spare    bool  // so is a kept number, which no party holds
	Within   []int // parties that wait under this hold, as their data say
	likewise []int // parties that wait in its session, and do not say under which hold
}

// Needs are the parties that must go, or be granted, before p goes; with
// perhaps, also the ones that may have to.
func (p party) Needs(perhaps bool) []int {
	switch {
	case p.waits:
		return p.Others
	case perhaps:
		return slices.Concat(p.Within, p.likewise)
	}
	return p.Within
}

// Parties are the contenders at all paths that can be part of a circle. The
// candidates of an election work on while they stand by, and no contender at a
// queue or a double barrier waits for another.
func (s *Survey) Parties() []party {
	var all []party
	for _, r := range s.Recipes {
		if r.Kind == QueueKind || r.Round != nil || r.Kind == electionKind || r.Kind == GroupKind {
			continue
		}
		first := len(all)
		for i, c := range r.Contenders {
			p := party{
				Contender: c, Path: r.Path, waits: r.Waits(c), anyOf: r.Kind == SlotsKind || r.Kind == NumbersKind,
				spare: r.Numbers != nil && len(r.Numbers.Kept) > 0,
			}
			if p.waits {
				for _, at := range r.waitsFor(i) {
					p.Others = append(p.Others, first+at)
				}
			}
			all = append(all, p)
		}
	}
	relate(all)
	return all
}

// KeptFrom are the numbers at a waiter's path that it would be given if they
// were not kept for their owners.
func (s *Survey) KeptFrom(p party) []Kept {
	if !p.waits {
		return nil
	}
	i, found := slices.BinarySearchFunc(s.Recipes, p.Path,
		func(r Report, path string) int { return strings.Compare(r.Path, path) })
	if !found || s.Recipes[i].Numbers == nil {
		return nil
	}
	return s.Recipes[i].Numbers.Kept
}

// ambiguous stands for the index of a name that several nodes have.
const ambiguous = -1

// relate finds out which claims wait under which holds.
func relate(all []party) {
	named, ofSession := map[string]int{}, map[string][]int{}
	for i, p := range all {
		name := path.Base(p.Node)
		if _, again := named[name]; again || p.Kind == slots.Kind { // slots' nodes have the same names at all paths
			named[name] = ambiguous
		} else {
			named[name] = i
		}
		named[HeldName(p.Node, p.Token)], named[p.Session+" "+name] = i, i
		if p.Holds && !p.Orphan && p.Age != nil {
			ofSession[p.Session] = append(ofSession[p.Session], i)
		}
	}
	for i, p := range all {
		if !p.waits {
			continue
		}
		says := false
		for _, name := range p.Under {
			hold, found := named[name]
			if hold == ambiguous {
				hold, found = named[p.Session+" "+name]
			}
			if found {
				all[hold].Within = append(all[hold].Within, i)
				says = says || all[hold].Session == p.Session
			}
		}
		if says {
			continue
		}
		for _, hold := range ofSession[p.Session] {
			all[hold].likewise = append(all[hold].likewise, i)
		}
	}
}

// HeldName is how a claim that is made under a hold of another process names
// the hold's node: by its name, and if that has no GUID, by its token, too,
// since other nodes may have that name.
func HeldName(node string, token int64) string {
	name := path.Base(node)
	if c := LineOf([]string{name}); len(c) > 0 && c[0].GUID != "" {
		return name
	}
	return fmt.Sprintf("%s@%d", name, token)
}

// Circle is a set of parties that need each other, directly or through others.
type Circle []party

// circles finds the circles. First it leaves out every party that can go, since
// all that it needs can go, or, if anyOf is set, one of them.
func circles(all []party, perhaps bool) (found []Circle) {
	stuck := slices.Repeat([]bool{true}, len(all))
	isStuck := func(i int) bool { return stuck[i] }
	for changed := true; changed; {
		changed = false
		for i, p := range all {
			needs := p.Needs(perhaps)
			blocked := slices.ContainsFunc(needs, isStuck)
			if p.waits && p.anyOf {
				blocked = !p.spare && len(needs) > 0 && !slices.ContainsFunc(needs, func(i int) bool { return !stuck[i] })
			}
			if stuck[i] && !blocked {
				stuck[i], changed = false, true
			}
		}
	}
	edges := simple.NewDirectedGraph()
	for i, p := range all {
		for _, other := range p.Needs(perhaps) {
			if stuck[i] && stuck[other] {
				edges.SetEdge(edges.NewEdge(simple.Node(i), simple.Node(other)))
			}
		}
	}
	for _, set := range topo.TarjanSCC(edges) {
		var c Circle
		for _, node := range set {
			c = append(c, all[node.ID()])
		}
		if len(c) > 1 {
			slices.SortFunc(c,
				func(a, b party) int { return slices.Compare([]string{a.Path, a.Node}, []string{b.Path, b.Node}) })
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b Circle) int { return slices.Compare(a.Nodes(), b.Nodes()) })
	return found
}

// each returns what of says of each party, in order.
func (c Circle) each(of func(party) string) (all []string) {
	for _, p := range c {
		all = append(all, of(p))
	}
	return all
}

func (c Circle) Nodes() []string { return c.each(func(p party) string { return p.Node }) }

// Sessions are the sessions of the circle.
func (c Circle) Sessions() []string {
	return slices.Compact(slices.Sorted(slices.Values(c.each(func(p party) string { return p.Session }))))
}

// Paths are where the circle's parties contend.
func (c Circle) Paths() []string {
	return slices.Compact(c.each(func(p party) string { return p.Path }))
}

// findCircles finds the circles among the recipes. A circle is certain if its
// claims say what they were made under, and a second look finds all of them
// still there: then all waited at one moment. It is possible if the claims do
// not say so, or if the second look failed.
func (s *Survey) findCircles(ctx context.Context, client *coord.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conn.LookWithin)
	defer cancel()
	all := s.Parties()
	in := map[string]bool{}
	for _, c := range circles(all, false) {
		switch there, err := stillThere(ctx, client, c); {
		case err != nil:
			s.Possible = append(s.Possible, c)
		case there:
			s.Certain = append(s.Certain, c)
		}
		for _, p := range c {
			in[p.Node] = true
		}
	}
	for _, c := range circles(all, true) {
		if !slices.ContainsFunc(c, func(p party) bool { return in[p.Node] }) {
			s.Possible = append(s.Possible, c)
		}
	}
	for i, r := range s.Recipes {
		for _, c := range s.Certain {
			if slices.Contains(c.Paths(), r.Path) {
				s.Recipes[i].deadlock = c.Paths()
			}
		}
	}
}

func stillThere(ctx context.Context, client *coord.Client, c Circle) (bool, error) {
	for _, p := range c {
		if _, there, err := client.Exists(ctx, p.Node); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// waitsFor are the nearest contenders that the i-th waits for.
func (r Report) waitsFor(i int) (others []int) {
	self := r.Contenders[i]
	if r.Kind == SlotsKind || r.Kind == NumbersKind {
		if i > 0 && r.Waits(r.Contenders[i-1]) {
			return []int{i - 1}
		}
		for at, c := range r.Contenders {
			if c.Holds {
				others = append(others, at)
			}
		}
		return others
	}
	for at, c := range slices.Backward(r.Contenders[:i]) {
		switch reads := c.Kind == "read"; {
		case c.Dialect != self.Dialect, self.Kind == "read" && reads:
			continue
		case !reads && len(others) > 0:
			return others
		case !reads:
			return []int{at}
		}
		others = append(others, at)
	}
	for at, c := range slices.Backward(r.Contenders[:i]) {
		if len(others) == 0 && c.Dialect != self.Dialect { // which it cannot honour
			return []int{at}
		}
	}
	return others
}

// electionKind is the kind of an election. Kazoo's are locks.
const electionKind = "election"
