package see

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type GraphVerb struct {
	Dot bool `help:"Write the graph for Graphviz: pipe it into \"dot -Tsvg\"."`
	look.Surveyed
}

// Run says who waits for whom. A circle that is certain is a failure.
func (v *GraphVerb) Run(s *term.Streams, c *conn.Connection) error {
	var certain int
	v.Dialect = c.LineDialect()
	err := c.With(func(ctx context.Context, client *coord.Client) error {
		found, err := v.Look(ctx, client)
		if err != nil {
			return err
		}
		if found.Absent {
			return term.Absent(v.Path)
		}
		g := graphOf(found)
		certain = len(g.Circles)
		switch {
		case s.JSON:
			return s.Print(g, "")
		case v.Dot:
			return g.dot(s.Out)
		}
		g.table(s.Page())
		return nil
	})
	if err == nil && certain > 0 {
		return term.Silently(term.ExitFailed)
	}
	return err
}

// WaitGraph says who waits for whom, over all paths.
type WaitGraph struct {
	Path    string     `json:"path"`
	Circles [][]string `json:"circles"` // sessions that wait for each other, for certain
	// Possible are sessions that wait for each other, perhaps in different
	// threads: their claims do not say.
	Possible [][]string `json:"possible_circles"`
	Waits    []waitFor  `json:"waits"`
	look.Extent

	certain, perhaps []look.Circle
	nested           []nesting
	owners           map[string]string // the sessions' owners
	unknown          []look.Report     // reports whose contenders are of unknown recipes
}

// nesting is a session that waits under a hold of another session.
type nesting struct{ hold, claim, path string }

// waitFor is a contender that waits for another at the same path.
type waitFor struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"` // of the waiter
	Session string   `json:"session"`
	Owner   string   `json:"owner"`
	Age     *float64 `json:"age"`
	Node    string   `json:"node"`
	Under   []string `json:"under"`     // the names of the nodes of the holds that it was made under, as far as it says so
	For     string   `json:"for"`       // the session that is waited for
	ForWho  string   `json:"for_owner"` // and its owner
	ForNode string   `json:"for_node"`
	Holds   bool     `json:"for_holds"` // the contender that is waited for holds, and does not wait itself
	// Delays are the nodes of holds that may not end before this wait does: it
	// was made under them, or may have been.
	Delays []string `json:"delays"`

	around []string // the paths of the holds that it was made under
	made   time.Time

	Away bool `json:"for_away,omitempty"` // what is waited for is kept for an owner that is away
}

// target is the name in Graphviz of what is waited for.
func (w waitFor) target() string {
	if w.Away {
		return "kept for " + w.ForWho
	}
	return w.For
}

// graphOf says who waits for whom. Of the contenders that a waiter waits for,
// the nearest are enough: they hold, or wait for the rest.
func graphOf(s *look.Survey) *WaitGraph {
	g := &WaitGraph{
		Path: s.Path, Circles: [][]string{}, Possible: [][]string{}, Waits: []waitFor{}, Extent: s.Extent,
		certain: s.Certain, perhaps: s.Possible, owners: map[string]string{},
	}
	for _, c := range s.Certain {
		g.Circles = append(g.Circles, c.Sessions())
	}
	for _, c := range s.Possible {
		g.Possible = append(g.Possible, c.Sessions())
	}
	for _, r := range s.Recipes {
		if r.Kind == look.UnknownKind {
			g.unknown = append(g.unknown, r)
		}
	}
	all := s.Parties()
	around, delays := map[string][]string{}, map[string][]string{} // by node
	for _, p := range all {
		if g.owners[p.Session] == "" {
			g.owners[p.Session] = p.Owner
		}
		for _, i := range p.Needs(true) {
			if p.Holds {
				delays[all[i].Node] = append(delays[all[i].Node], p.Node)
			}
		}
		for _, i := range p.Within {
			around[all[i].Node] = append(around[all[i].Node], p.Path)
			if all[i].Session != p.Session {
				g.nested = append(g.nested, nesting{p.Session, all[i].Session, p.Path})
			}
		}
	}
	for _, p := range all {
		for _, i := range p.Others {
			other := all[i]
			g.Waits = append(g.Waits, waitFor{
				p.Path, p.Kind, p.Session, p.Owner, p.Age, p.Node, append([]string{}, p.Under...),
				other.Session, other.Owner, other.Node, other.Holds, append([]string{}, delays[p.Node]...), around[p.Node], p.Made,
				false,
			})
		}
		for _, k := range s.KeptFrom(p) {
			g.Waits = append(g.Waits, waitFor{
				p.Path, p.Kind, p.Session, p.Owner, p.Age, p.Node, append([]string{}, p.Under...),
				"", k.Owner, k.Node, false, append([]string{}, delays[p.Node]...), around[p.Node], p.Made, true,
			})
		}
	}
	return g
}

// within are the waits of a circle.
func (g *WaitGraph) within(c look.Circle) (waits []waitFor) {
	nodes := c.Nodes()
	for _, w := range g.Waits {
		if slices.Contains(nodes, w.Node) && slices.Contains(nodes, w.ForNode) {
			waits = append(waits, w)
		}
	}
	return waits
}

func (g *WaitGraph) table(to term.Page) {
	for _, kind := range []struct {
		heading string
		circles []look.Circle
	}{
		{"circle %d: these wait for each other, for ever", g.certain},
		{"possible circle %d: these sessions wait for each other, for ever if each is one thread; " +
			"their claims do not say under which holds they were made", g.perhaps},
	} {
		for i, c := range kind.circles {
			to.Say("", kind.heading, i+1)
			writeWaits(to, g.within(c))
			fmt.Fprintln(to)
		}
	}
	writeWaits(to, g.Waits)
	for _, r := range g.unknown {
		to.Say(r.Path, ": an unknown recipe%s", r.LikelyText())
	}
	to.Say("", "%s, %s; %s", term.Plural(len(g.Waits), "wait", "waits"),
		circleCount(len(g.certain), len(g.perhaps)), g.Extent)
}

// circleCount says how many circles there are, and how many more there may be.
func circleCount(certain, possible int) string {
	count := term.Plural(certain, "circle", "circles")
	if possible > 0 {
		count += ", " + term.Plural(possible, "possible one", "possible ones")
	}
	return count
}

func writeWaits(to term.Page, waits []waitFor) {
	if len(waits) == 0 {
		return
	}
	t := term.Table{Heads: []string{"WAITS", "SESSION", "AT", "SINCE", "UNDER", "FOR", "SESSION", ""}}
	for _, x := range waits {
		since, holds := "", ""
		if x.Age != nil {
			since = term.Age(*x.Age)
		}
		switch {
		case x.Holds:
			holds = "holds"
		case x.Away:
			holds = "away, its number is kept"
		}
		t.Add("", look.Contender{Owner: x.Owner}.Who(), x.Session, term.Plain(x.Path), since,
			term.Plain(strings.Join(x.around, " ")),
			look.Contender{Owner: x.ForWho}.Who(), x.For, holds)
	}
	_ = t.Write(to)
}

// dot writes the sessions for Graphviz: sessions of circles in red, sessions of
// possible circles in orange, and a dashed line from the session of a hold to
// another session that waits under it.
func (g *WaitGraph) dot(to io.Writer) error {
	certain, possible := slices.Concat(g.Circles...), slices.Concat(g.Possible...)
	var text strings.Builder
	text.WriteString("digraph waits {\n\tnode [shape=box];\n")
	var sessions []string
	for _, w := range g.Waits {
		sessions = append(sessions, w.Session, w.target())
	}
	slices.Sort(sessions)
	for _, session := range slices.Compact(sessions) {
		color := ""
		if slices.Contains(certain, session) {
			color = ", color=red"
		} else if slices.Contains(possible, session) {
			color = ", color=orange"
		}
		fmt.Fprintf(&text, "\t%q [label=%q%s];\n", session, strings.TrimPrefix(g.owners[session]+"\n"+session, "\n"), color)
	}
	for _, w := range g.Waits {
		fmt.Fprintf(&text, "\t%q -> %q [label=%q];\n", w.Session, w.target(), w.Path)
	}
	for _, n := range g.nested {
		fmt.Fprintf(&text, "\t%q -> %q [label=%q, style=dashed];\n", n.hold, n.claim, n.path)
	}
	text.WriteString("}\n")
	_, err := io.WriteString(to, text.String())
	return err
}
