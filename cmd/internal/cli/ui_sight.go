package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	Waits       []waitFor   `json:"waits"`
	MoreWaits   int         `json:"more_waits"`
	extent
}

// sighted is a recipe with the first of its contenders.
type sighted struct {
	report
	Waiting int `json:"waiting"`
	More    int `json:"more"` // contenders
}

func (s *survey) sight() sight {
	g := s.graph()
	found := sight{
		Path: s.path, Recipes: []sighted{}, MoreRecipes: max(0, len(s.recipes)-mostSeen), Circles: [][]waitFor{},
		Waits: g.Waits[:min(len(g.Waits), mostSeen)], MoreWaits: max(0, len(g.Waits)-mostSeen), extent: s.extent,
	}
	for _, circle := range g.Circles[:min(len(g.Circles), mostContenders)] {
		waits := g.within(circle)
		found.Circles = append(found.Circles, waits[:min(len(waits), mostContenders)])
	}
	for _, r := range s.recipes[:min(len(s.recipes), mostSeen)] {
		one := sighted{report: r, Waiting: r.waiting(), More: max(0, len(r.Contenders)-mostContenders)}
		one.Odd, one.Contenders = r.oddities(), r.Contenders[:len(r.Contenders)-one.More]
		found.Recipes = append(found.Recipes, one)
	}
	return found
}

func (v *uiVerb) look(client *coord.Client, c *connection) func(context.Context) (any, error) {
	book := &addressBook{c: c}
	return func(ctx context.Context) (any, error) {
		found, err := surveyed{Most: v.Most, Path: v.Path}.look(ctx, client)
		if err != nil {
			return nil, err
		}
		seen := found.sight()
		for i := range seen.Recipes {
			book.fill(ctx, &seen.Recipes[i].report)
		}
		return seen, nil
	}
}

// act does something to one contender: that of the session which the page
// showed, at a path that it showed.
func (v *uiVerb) act(client *coord.Client, do func(context.Context, string) error) ui.Act {
	return func(ctx context.Context, target ui.Target) error {
		if err := nodePath(target.Path).Validate(); target.Path != "/" && err != nil {
			return err
		}
		if target.Path != v.Path && !strings.HasPrefix(target.Path, strings.TrimSuffix(v.Path, "/")+"/") {
			return errors.New("the page does not show " + target.Path)
		}
		found, err := targets(ctx, client, nodePath(target.Path), target.Node)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(c contender) bool { return c.Session != target.Session })
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
			if there && sessionName(stat.Owner) != target.Session {
				return errors.New("another session has " + c.Node + " by now")
			}
			if err := do(ctx, c.Node); err != nil {
				return err
			}
		}
		return nil
	}
}
