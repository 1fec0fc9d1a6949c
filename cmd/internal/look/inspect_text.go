package look

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

func (r Report) Table(to term.Page) {
	to.Say(r.Path, ": %s", r.about())
	r.Ledger.table(to)
	if r.Queue != nil {
		r.Queue.table(to)
	}
	r.contenderTable(to)
	var odd term.Table
	for _, o := range r.Findings() {
		odd.Add(o.Found+"\n→ "+o.Do, "!")
	}
	_ = odd.Write(to)
}

// about says what there is.
func (r Report) about() string {
	switch {
	case r.Kind == mixed && r.Queue != nil:
		return "mixed; " + r.Queue.about(r.Path) + r.beside()
	case r.Queue != nil:
		return r.Queue.about(r.Path) + r.beside()
	case r.Round != nil:
		return r.Round.String() + r.beside()
	case r.Closed != nil:
		return fmt.Sprintf("a closed barrier, set %s ago by %s", term.Age(r.Closed.Age), r.Closed.by())
	case !r.Exists:
		return "there is nothing"
	case r.Kind == NodeKind:
		return "a node of a session: it holds the lock, if making the node takes the lock"
	case r.Kind == UnknownKind:
		return "an unknown recipe" + r.LikelyText() + r.beside()
	case r.Kind != mixed && r.Keeps() != "":
		return fmt.Sprintf("%s: %s; \"%s %s %s\" shows all%s", r.Kind, r.Keeps(), term.Program, r.lists(),
			term.Plain(r.Path), r.beside())
	case len(r.Contenders) > 0:
		return fmt.Sprintf("%s%s, %s dialect%s", r.Kind, r.limit(), r.Dialect, r.beside())
	case r.Kind != "":
		return fmt.Sprintf("%s%s; nobody holds it, nobody waits%s", r.Kind, r.limit(), r.beside())
	}
	return "nobody holds it, nobody waits" + r.beside()
}

// by is who has set the barrier, for people.
func (c Closing) by() string { return strconv.Quote(term.Middle(c.By, mostOwner)) }

// Keeps says in a few words what a schedule, a ledger or shards keep below the
// path.
func (r Report) Keeps() string {
	switch {
	case r.Schedule != nil:
		return r.Schedule.String()
	case r.Ledger != nil:
		return r.Ledger.String()
	case r.Shards != nil:
		return r.Shards.String()
	}
	return ""
}

// lists is the command that shows what a recipe keeps.
func (r Report) lists() string {
	if r.Shards != nil {
		return r.Kind
	}
	return r.Kind + " --list"
}

func (r Report) limit() string {
	if r.Numbers != nil {
		return r.Numbers.String()
	}
	if r.Limit == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", r.Limit)
}

// beside says how many other nodes there are.
func (r Report) beside() string {
	if r.Others == 0 {
		return ""
	}
	return fmt.Sprintf("; %s below it", term.Plural(r.Others, "other node is", "other nodes are"))
}

func (r Report) contenderTable(to term.Page) {
	if len(r.Contenders) == 0 {
		return
	}
	t := term.Table{Heads: []string{"", "STATE", "KIND", "OWNER", "AGE", "SESSION", "NODE"}, Whole: 3}
	told := slices.ContainsFunc(r.Contenders, func(c Contender) bool { return c.Address != "" })
	if told {
		t.Heads = slices.Insert(t.Heads, addressColumn, "ADDRESS")
	}
	for _, c := range r.Contenders {
		cells := []string{
			strconv.Itoa(c.Position), c.state(), r.sortOf(c), c.Who(), c.Aged(), c.session(),
			term.Plain(strings.TrimPrefix(c.Node, r.Path+"/")),
		}
		if told {
			cells = slices.Insert(cells, addressColumn, term.Plain(c.Address))
		}
		t.Add("", cells...)
	}
	_ = t.Write(to)
}

// addressColumn is the place of the column with the clients' addresses, if any
// is known.
const addressColumn = 4

func (c Contender) state() string {
	state := c.State
	if c.HeldFor != nil {
		state += " " + c.Held.String()
	}
	if c.Revoked {
		state += ", asked"
	}
	if silence := c.Silence(); silence != "" {
		state += ", " + silence
	}
	return state
}

// sortOf is a contender's kind, and its dialect where there are two.
func (r Report) sortOf(c Contender) string {
	if r.Dialect != "mixed" || c.Dialect == UnknownKind {
		return c.Kind
	}
	return c.Kind + ", " + c.Dialect
}

func (c Contender) session() string {
	switch {
	case c.Orphan:
		return "none"
	case c.Age == nil:
		return "unknown"
	}
	return c.Session
}

// mostOwner is how much of an owner is shown, in columns.
const mostOwner = 60

func (c Contender) Who() string {
	if c.Owner == "" {
		return "unknown"
	}
	return strconv.Quote(term.Middle(c.Owner, mostOwner))
}

// Aged is the contender's age as people write it. The age of a node that may
// not be read is not known.
func (c Contender) Aged() string {
	if c.Age == nil {
		return "unknown"
	}
	return term.Age(*c.Age)
}

// Since is how long the contender has held, if that is known, or else how long
// it has been there.
func (c Contender) Since() string {
	return cmp.Or(c.Held.String(), "there for "+c.Aged())
}

// HeldBy is who holds, and for how long.
func (r Report) HeldBy() (holder, since string) {
	if r.Closed != nil {
		return r.Closed.by(), "for " + term.Age(r.Closed.Age)
	}
	if r.Queue != nil {
		return fmt.Sprintf("%s, %d in hand", term.Plural(r.Queue.Items, "item", "items"), r.Queue.InHand), ""
	}
	if keeps := r.Keeps(); keeps != "" {
		return keeps, ""
	}
	holders := r.Holders()
	if len(holders) == 0 {
		return "-", ""
	}
	holder = holders[0].Who()
	if more := len(holders) - 1; more > 0 {
		holder += fmt.Sprintf(" and %d more", more)
	}
	return holder, holders[0].Since()
}

// Sort is the kind, and the dialect if it is not Curator's.
func (r Report) Sort() string {
	switch {
	case len(r.Contenders) > 0 && r.Dialect == string(coord.Curator) && byGoZooKeeper.MatchString(r.Contenders[0].Node):
		return r.Kind + ", go-zookeeper"
	case r.Kind == UnknownKind && r.Likely() != "":
		return fmt.Sprintf("%s, like %s", r.Kind, r.Likely())
	case r.Dialect == "" || r.Dialect == string(coord.Curator) || r.Kind == UnknownKind:
		return r.Kind
	}
	return r.Kind + ", " + r.Dialect
}

// byGoZooKeeper matches the names that go-zookeeper's own lock gives its nodes,
// with a GUID without dashes. They stand in Curator's line.
var byGoZooKeeper = regexp.MustCompile(`/_c_[0-9a-f]{32}-lock-[0-9]+$`)
