package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (r report) table(to page) error {
	if err := to.say(r.Path, ": %s", r.about()); err != nil {
		return err
	}
	if r.Queue != nil {
		if err := r.Queue.table(to); err != nil {
			return err
		}
	}
	if err := r.contenderTable(to); err != nil {
		return err
	}
	var odd table
	for _, o := range r.odd() {
		odd.add(o.found+"\n→ "+o.do, "!")
	}
	return odd.write(to)
}

// about says what there is.
func (r report) about() string {
	switch {
	case r.Queue != nil:
		return r.Queue.about(r.Path) + r.beside()
	case r.Round != nil:
		return r.Round.String() + r.beside()
	case r.Closed != nil:
		return fmt.Sprintf("a closed barrier, set %s ago by %s", age(r.Closed.Age), r.Closed.by())
	case !r.Exists:
		return "there is nothing"
	case len(r.Contenders) > 0:
		return fmt.Sprintf("%s%s, %s dialect%s", r.Kind, r.limit(), r.Dialect, r.beside())
	case r.Kind != "":
		return fmt.Sprintf("%s%s; nobody holds it, nobody waits%s", r.Kind, r.limit(), r.beside())
	}
	return "nobody holds it, nobody waits" + r.beside()
}

// by is who has set it, as people are told.
func (c closing) by() string { return strconv.Quote(middle(c.By, mostOwner)) }

func (r report) limit() string {
	if r.Limit == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", r.Limit)
}

// beside says what there is beside what inspect knows.
func (r report) beside() string {
	if r.Others == 0 {
		return ""
	}
	return fmt.Sprintf("; %s below it", plural(r.Others, "other node is", "other nodes are"))
}

func (r report) contenderTable(to page) error {
	if len(r.Contenders) == 0 {
		return nil
	}
	t := table{heads: []string{"", "STATE", "KIND", "OWNER", "AGE", "SESSION", "NODE"}, whole: 3}
	told := slices.ContainsFunc(r.Contenders, func(c contender) bool { return c.Address != "" })
	if told {
		t.heads = slices.Insert(t.heads, addressColumn, "ADDRESS")
	}
	for _, c := range r.Contenders {
		cells := []string{
			strconv.Itoa(c.Position), c.state(), r.sortOf(c), c.owner(), c.age(), c.session(),
			plain(strings.TrimPrefix(c.Node, r.Path+"/")),
		}
		if told {
			cells = slices.Insert(cells, addressColumn, plain(c.Address))
		}
		t.add("", cells...)
	}
	return t.write(to)
}

// addressColumn is where the clients' addresses are, if any is told.
const addressColumn = 4

func (c contender) state() string {
	if c.Revoked {
		return c.State + ", asked"
	}
	return c.State
}

// sortOf is a contender's kind, and its dialect where there are two.
func (r report) sortOf(c contender) string {
	if r.Dialect != "mixed" {
		return c.Kind
	}
	return c.Kind + ", " + c.Dialect
}

func (c contender) session() string {
	switch {
	case c.Orphan:
		return "none"
	case c.Age == nil:
		return "unknown"
	}
	return c.Session
}

// mostOwner is how much of an owner is shown.
const mostOwner = 60

func (c contender) owner() string {
	if c.Owner == "" {
		return "unknown"
	}
	return strconv.Quote(middle(c.Owner, mostOwner))
}

// age is the contender's as people write it. That of a node that may not be
// read is not known.
func (c contender) age() string {
	if c.Age == nil {
		return "unknown"
	}
	return age(*c.Age)
}

// plain is a name from the servers as a terminal may show it: quoted, if there
// is anything in it that is not seen.
func plain(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// age is a number of seconds as people write it.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
