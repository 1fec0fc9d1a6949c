package cli

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type lsVerb struct {
	Watch bool          `help:"Again and again, until q is typed."`
	Every time.Duration `default:"2s" positive:"" help:"With --watch: how often to look."`
	surveyed
}

// Run lists the recipes at a path and below.
func (v *lsVerb) Run(s *streams, c *connection) error {
	if v.Watch {
		return repeat(s, c, v.Every, v.show)
	}
	return c.with(func(ctx context.Context, client *coord.Client) error { return v.show(ctx, client, s, s.page()) })
}

func (v *lsVerb) show(ctx context.Context, client *coord.Client, s *streams, to page) error {
	found, err := v.look(ctx, client)
	if err != nil {
		return err
	}
	if s.json {
		return writeJSON(s.out, found.listing())
	}
	return found.table(to)
}

// listing is a survey with a line for each recipe, in the place of all its
// contenders.
type listing struct {
	Path    string   `json:"path"`
	Recipes []listed `json:"recipes"` // by path
	extent
}

// listed is a recipe as ls tells of it.
type listed struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Dialect string   `json:"dialect"`
	Holders []string `json:"holders"` // their owners
	Age     *float64 `json:"age"`     // seconds since the node of the first holder was made; null: nobody holds, or it is not known
	Waiting int      `json:"waiting"`
	Items   *int     `json:"items,omitempty"` // of a queue
	Odd     []string `json:"odd"`
}

func (s *survey) listing() listing {
	l := listing{s.path, make([]listed, 0, len(s.recipes)), s.extent}
	for _, r := range s.recipes {
		one := listed{Path: r.Path, Kind: r.Kind, Dialect: r.Dialect, Holders: []string{}, Waiting: r.waiting(), Odd: r.oddities()}
		for _, h := range r.holders() {
			one.Holders = append(one.Holders, h.Owner)
			if one.Age == nil {
				one.Age = h.Age
			}
		}
		if r.Queue != nil {
			one.Items = &r.Queue.Items
		}
		l.Recipes = append(l.Recipes, one)
	}
	return l
}

func (s *survey) table(to page) error {
	if len(s.recipes) > 0 {
		t := table{heads: []string{"PATH", "KIND", "HOLDER", "FOR", "WAIT"}, about: "ODD"}
		for _, r := range s.recipes {
			holder, since := r.heldBy()
			t.add(strings.Join(r.oddities(), "; "), plain(r.Path), r.sort(), holder, since, strconv.Itoa(r.waiting()))
		}
		if err := t.write(to); err != nil {
			return err
		}
	}
	return to.say("", "%s at %s and below; %s", plural(len(s.recipes), "recipe", "recipes"), plain(s.path), s.extent)
}

func (s extent) String() string {
	text := plural(s.Looked, "node was", "nodes were") + " looked at"
	if s.Left > 0 {
		text += fmt.Sprintf("; left out: %s, with what is below (--most, --connect-timeout)", plural(s.Left, "node", "nodes"))
	}
	if len(s.Hidden) > 0 {
		text += fmt.Sprintf("; not to be listed: %s", strings.Join(s.Hidden, ", "))
	}
	return text
}

// byGoZooKeeper is how go-zookeeper's own lock names its nodes: with the digits
// of a GUID without its dashes. It stands in Curator's line.
var byGoZooKeeper = regexp.MustCompile(`/_c_[0-9a-f]{32}-lock-[0-9]+$`)

// sort is the kind, and the dialect if it is not the usual one.
func (r report) sort() string {
	switch {
	case len(r.Contenders) > 0 && r.Dialect == string(coord.Curator) && byGoZooKeeper.MatchString(r.Contenders[0].Node):
		return r.Kind + ", go-zookeeper"
	case r.Dialect == "" || r.Dialect == string(coord.Curator):
		return r.Kind
	}
	return r.Kind + ", " + r.Dialect
}

// heldBy is who holds, and for how long.
func (r report) heldBy() (holder, since string) {
	if r.Closed != nil {
		return r.Closed.by(), age(r.Closed.Age)
	}
	if r.Queue != nil {
		return fmt.Sprintf("%s, %d in hand", plural(r.Queue.Items, "item", "items"), r.Queue.InHand), ""
	}
	holders := r.holders()
	if len(holders) == 0 {
		return "-", ""
	}
	holder = holders[0].owner()
	if more := len(holders) - 1; more > 0 {
		holder += fmt.Sprintf(" and %d more", more)
	}
	return holder, holders[0].age()
}
