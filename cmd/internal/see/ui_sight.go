package see

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord"
)

// What a page shows at most.
const (
	mostSeen       = 1000 // recipes, and waits
	mostContenders = 50   // of a recipe
)

// sight is what the page shows: what ls, inspect and graph tell.
type sight struct {
	Path        string      `json:"path"`
	Recipes     []sighted   `json:"recipes"`      // by path
	MoreRecipes int         `json:"more_recipes"` // that are not in the list
	Circles     [][]waitFor `json:"circles"`
	Possible    [][]waitFor `json:"possible_circles"`
	Waits       []waitFor   `json:"waits"`
	MoreWaits   int         `json:"more_waits"`
	look.Extent
}

// sighted is a recipe with the first of its contenders.
type sighted struct {
	look.Report
	Waiting int `json:"waiting"`
	More    int `json:"more"` // contenders
}

func sightOf(s *look.Survey) sight {
	g := graphOf(s)
	found := sight{
		Path: s.Path, Recipes: []sighted{}, MoreRecipes: max(0, len(s.Recipes)-mostSeen), Circles: g.shown(g.certain), Possible: g.shown(g.perhaps),
		Waits: g.Waits[:min(len(g.Waits), mostSeen)], MoreWaits: max(0, len(g.Waits)-mostSeen), Extent: s.Extent,
	}
	for _, r := range s.Recipes[:min(len(s.Recipes), mostSeen)] {
		one := sighted{Report: r, Waiting: r.Waiting(), More: max(0, len(r.Contenders)-mostContenders)}
		one.Odd, one.Contenders = r.Oddities(), r.Contenders[:len(r.Contenders)-one.More]
		found.Recipes = append(found.Recipes, one)
	}
	return found
}

// shown are the first waits of the first circles.
func (g *WaitGraph) shown(circles []look.Circle) [][]waitFor {
	shown := [][]waitFor{}
	for _, c := range circles[:min(len(circles), mostContenders)] {
		waits := g.within(c)
		shown = append(shown, waits[:min(len(waits), mostContenders)])
	}
	return shown
}

func (v *UIVerb) look(client *coord.Client, c *conn.Connection) func(context.Context) (any, error) {
	book, seen := look.NewAddressBook(c), new(look.Sightings)
	return func(ctx context.Context) (any, error) {
		found, err := look.Surveyed{Most: v.Most, Path: v.Path}.Look(ctx, client)
		if err != nil {
			return nil, err
		}
		found.Date(seen)
		shown := sightOf(found)
		for i := range shown.Recipes {
			book.Fill(ctx, &shown.Recipes[i].Report)
		}
		return shown, nil
	}
}

// act does something to one contender: that of the session which the page
// showed, at a path that it showed.
func (v *UIVerb) act(client *coord.Client, do func(context.Context, *coord.Client, string) error) ui.Act {
	return func(ctx context.Context, target ui.Target) error {
		if err := conn.NodePath(target.Path).Validate(); target.Path != "/" && err != nil {
			return err
		}
		if target.Path != v.Path && !strings.HasPrefix(target.Path, strings.TrimSuffix(v.Path, "/")+"/") {
			return errors.New("the page does not show " + target.Path)
		}
		found, err := targets(ctx, client, conn.NodePath(target.Path), target.Node)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(c look.Contender) bool { return c.Session != target.Session })
		if len(found) == 0 {
			return errors.New("another session has " + target.Node + " by now")
		}
		fresh := client.Fresh()
		for _, c := range found {
			// A claim on a queue's item has the same name in every hand.
			stat, there, err := fresh.Exists(ctx, c.Node)
			if err != nil {
				return err
			}
			if there && look.SessionName(stat.Owner) != target.Session {
				return errors.New("another session has " + c.Node + " by now")
			}
			if err := do(ctx, client, c.Node); err != nil {
				return err
			}
		}
		return nil
	}
}
