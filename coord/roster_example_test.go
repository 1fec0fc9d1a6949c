package coord_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Roster is a recipe of one's own: who is there, by name.
type Roster struct {
	client *coord.Client
	path   string
}

// NewRoster returns the roster at path.
func NewRoster(client *coord.Client, path string) (*Roster, error) {
	return &Roster{client, path}, recipe.Check(client, path)
}

// Join puts a name on the roster until the hold ends. It fails with
// [coord.ErrNodeExists] while another has the name.
func (r *Roster) Join(ctx context.Context, name string) (*coord.Hold, error) {
	return recipe.AcquireName(ctx, r.client, coord.NameSpec{Path: r.path + "/" + name})
}

// Observe yields the names, in order, and again whenever they have changed.
func (r *Roster) Observe(ctx context.Context) iter.Seq2[[]string, error] {
	return recipe.Observe(ctx, r.client.Synced(), r.path, func(v *coord.View) ([]string, error) {
		names, err := v.ChildrenIfAny(r.path)
		return slices.Sorted(slices.Values(names)), err
	}, slices.Equal)
}

func Example_roster() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := coord.Open(ctx, server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	roster, err := NewRoster(client, "/workers")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"bob", "ann"} {
		if _, err := roster.Join(ctx, name); err != nil {
			log.Fatal(err)
		}
	}
	for names, err := range roster.Observe(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(names)
		break
	}
	// Output: [ann bob]
}
