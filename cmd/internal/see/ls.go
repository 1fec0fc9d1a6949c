package see

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type LsVerb struct {
	Watch bool           `help:"Again and again, until q is typed."`
	Every *time.Duration `placeholder:"2s" positive:"" help:"With --watch: how often to look."`
	look.Surveyed
}

// Run lists the recipes at a path and below.
func (v *LsVerb) Run(s *term.Streams, c *conn.Connection) error {
	seen := new(look.Sightings)
	show := func(ctx context.Context, client *coord.Client, s *term.Streams, to term.Page) error {
		return v.show(ctx, client, seen, s, to)
	}
	switch {
	case v.Watch && v.Every == nil:
		return repeat(s, c, 2*time.Second, show)
	case v.Watch:
		return repeat(s, c, *v.Every, show)
	case v.Every != nil:
		return term.UsageError("--every goes with --watch")
	}
	return c.With(func(ctx context.Context, client *coord.Client) error { return show(ctx, client, s, s.Page()) })
}

func (v *LsVerb) show(ctx context.Context, client *coord.Client, seen *look.Sightings, s *term.Streams, to term.Page) error {
	found, err := v.Look(ctx, client)
	if err != nil {
		return err
	}
	found.Date(seen)
	if s.JSON {
		return term.WriteJSON(s.Out, listingOf(found))
	}
	return writeListing(to, found)
}

// Listing is a survey with a line for each recipe, in the place of all its
// contenders.
type Listing struct {
	Path    string   `json:"path"`
	Recipes []listed `json:"recipes"` // by path
	look.Extent
}

// listed is a recipe as ls shows it.
type listed struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Dialect string   `json:"dialect"`
	Holders []string `json:"holders"`   // their owners
	There   *float64 `json:"there_for"` // seconds since the node of the first holder was made, its wait included; null: nobody holds, or it is not known
	HeldFor *float64 `json:"held_for"`  // seconds since it was granted, if that is known
	Waiting int      `json:"waiting"`
	Items   *int     `json:"items,omitempty"` // of a queue
	Odd     []string `json:"odd"`
}

func listingOf(s *look.Survey) Listing {
	l := Listing{s.Path, make([]listed, 0, len(s.Recipes)), s.Extent}
	for _, r := range s.Recipes {
		one := listed{Path: r.Path, Kind: r.Kind, Dialect: r.Dialect, Holders: []string{}, Waiting: r.Waiting(), Odd: r.Oddities()}
		for _, h := range r.Holders() {
			one.Holders = append(one.Holders, h.Owner)
			if len(one.Holders) == 1 {
				one.There, one.HeldFor = h.Age, h.HeldFor
			}
		}
		if r.Queue != nil {
			one.Items = &r.Queue.Items
		}
		l.Recipes = append(l.Recipes, one)
	}
	return l
}

func writeListing(to term.Page, s *look.Survey) error {
	if len(s.Recipes) > 0 {
		t := term.Table{Heads: []string{"PATH", "KIND", "HOLDER", "HELD", "WAIT"}, About: "ODD"}
		for _, r := range s.Recipes {
			holder, since := r.HeldBy()
			t.Add(strings.Join(r.Oddities(), "; "), term.Plain(r.Path), r.Sort(), holder, since, strconv.Itoa(r.Waiting()))
		}
		if err := t.Write(to); err != nil {
			return err
		}
	}
	return to.Say("", "%s at %s and below; %s", term.Plural(len(s.Recipes), "recipe", "recipes"), term.Plain(s.Path), s.Extent)
}
