package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/zkcoord/zkcoord/coord"
)

// latchKind is the kind of an election.
const latchKind = "latch"

type graphVerb struct {
	Dot bool `help:"Write it for Graphviz: pipe it into \"dot -Tsvg\"."`
	surveyed
}

// Run tells who waits for whom.
func (v *graphVerb) Run(s *streams, c *connection) error {
	var circles int
	err := c.with(func(ctx context.Context, client *coord.Client) error {
		found, err := v.look(ctx, client)
		if err != nil {
			return err
		}
		g := found.graph()
		circles = len(g.Circles)
		switch {
		case s.json:
			s.told = true
			return writeJSON(s.out, g)
		case v.Dot:
			return g.dot(s.out)
		}
		return g.table(s.page())
	})
	if err == nil && circles > 0 {
		return silently(exitFailed)
	}
	return err
}

// waitGraph is who waits for whom, over all paths.
type waitGraph struct {
	Path    string     `json:"path"`
	Circles [][]string `json:"circles"` // sessions that wait for each other: those of a process may be of goroutines that do not
	Waits   []waitFor  `json:"waits"`
	extent

	owners map[string]string // of the sessions
}

// waitFor is a contender that waits for another of the same path.
type waitFor struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"` // of the one that waits
	Session string   `json:"session"`
	Owner   string   `json:"owner"`
	Age     *float64 `json:"age"`
	For     string   `json:"for"`       // the session that is waited for
	ForWho  string   `json:"for_owner"` // and its owner
	Holds   bool     `json:"for_holds"` // that one holds, and does not wait itself
}

// graph finds out who waits for whom. Of those that a contender waits for, the
// nearest are enough: these wait for the rest, or hold.
func (s *survey) graph() *waitGraph {
	g := &waitGraph{Path: s.path, Circles: [][]string{}, Waits: []waitFor{}, extent: s.extent, owners: map[string]string{}}
	for _, r := range s.recipes {
		for i, c := range r.Contenders {
			if g.owners[c.Session] == "" {
				g.owners[c.Session] = c.Owner
			}
			if r.Queue != nil || r.Round != nil || !r.waits(c) {
				continue // these wait for work, or for others to come
			}
			if r.Kind == latchKind {
				continue // a candidate stands by, and goes on with its work
			}
			for _, other := range r.waitsFor(i) {
				g.Waits = append(g.Waits, waitFor{r.Path, c.Kind, c.Session, c.Owner, c.Age, other.Session, other.Owner, other.Holds})
			}
		}
	}
	g.findCircles()
	return g
}

// waitsFor are the nearest contenders that the i-th waits for.
func (r report) waitsFor(i int) (others []contender) {
	self := r.Contenders[i]
	if r.Kind == slotsKind {
		if i > 0 && r.waits(r.Contenders[i-1]) {
			return r.Contenders[i-1 : i]
		}
		return r.holders()
	}
	for _, c := range slices.Backward(r.Contenders[:i]) {
		switch reads := c.Kind == "read"; {
		case self.Kind == "read" && reads:
			continue
		case !reads && len(others) > 0:
			return others
		case !reads:
			return []contender{c}
		}
		others = append(others, c)
	}
	return others
}

// findCircles finds the sets of sessions of which each waits for each other, be
// it by way of others.
func (g *waitGraph) findCircles() {
	numbers, names := map[string]int64{}, []string{}
	number := func(session string) int64 {
		if _, known := numbers[session]; !known {
			numbers[session] = int64(len(names))
			names = append(names, session)
		}
		return numbers[session]
	}
	sessions := simple.NewDirectedGraph()
	for _, w := range g.Waits {
		from, to := number(w.Session), number(w.For)
		if from != to {
			sessions.SetEdge(sessions.NewEdge(simple.Node(from), simple.Node(to)))
		}
	}
	for _, set := range topo.TarjanSCC(sessions) {
		if len(set) < 2 {
			continue
		}
		var circle []string
		for _, node := range set {
			circle = append(circle, names[node.ID()])
		}
		slices.Sort(circle)
		g.Circles = append(g.Circles, circle)
	}
	slices.SortFunc(g.Circles, slices.Compare)
}

// within are the waits of a circle.
func (g *waitGraph) within(circle []string) (waits []waitFor) {
	for _, w := range g.Waits {
		if w.Session != w.For && slices.Contains(circle, w.Session) && slices.Contains(circle, w.For) {
			waits = append(waits, w)
		}
	}
	return waits
}

func (g *waitGraph) table(to page) error {
	for i, circle := range g.Circles {
		fmt.Fprintf(to, "circle %d: these wait for each other, for ever if each is one thread\n", i+1)
		if err := writeWaits(to, g.within(circle)); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	if err := writeWaits(to, g.Waits); err != nil {
		return err
	}
	return to.say("", "%s, %s; %s", plural(len(g.Waits), "wait", "waits"), plural(len(g.Circles), "circle", "circles"), g.extent)
}

func writeWaits(to page, waits []waitFor) error {
	if len(waits) == 0 {
		return nil
	}
	t := table{heads: []string{"WAITS", "SESSION", "AT", "SINCE", "FOR", "SESSION", ""}}
	for _, x := range waits {
		since, holds := "", ""
		if x.Age != nil {
			since = age(*x.Age)
		}
		if x.Holds {
			holds = "holds"
		}
		t.add("", contender{Owner: x.Owner}.owner(), x.Session, plain(x.Path), since, contender{Owner: x.ForWho}.owner(), x.For, holds)
	}
	return t.write(to)
}

// dot writes the sessions as Graphviz draws them, those of circles in red.
func (g *waitGraph) dot(to io.Writer) error {
	circling := slices.Concat(g.Circles...)
	var text strings.Builder
	text.WriteString("digraph waits {\n\tnode [shape=box];\n")
	var sessions []string
	for _, w := range g.Waits {
		sessions = append(sessions, w.Session, w.For)
	}
	slices.Sort(sessions)
	for _, session := range slices.Compact(sessions) {
		fmt.Fprintf(&text, "\t%q [label=%q%s];\n", session, g.owners[session]+"\n"+session, red(slices.Contains(circling, session)))
	}
	for _, w := range g.Waits {
		fmt.Fprintf(&text, "\t%q -> %q [label=%q];\n", w.Session, w.For, w.Path)
	}
	text.WriteString("}\n")
	_, err := io.WriteString(to, text.String())
	return err
}

func red(is bool) string {
	if is {
		return ", color=red"
	}
	return ""
}
