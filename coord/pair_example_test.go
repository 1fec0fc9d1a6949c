package coord_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Pair is a recipe of one's own: two may hold at a time, in the order of their
// arrival.
type Pair struct {
	client *coord.Client
	spec   coord.Spec
}

// NewPair returns the pair at path.
func NewPair(client *coord.Client, path string) (*Pair, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	return &Pair{client, coord.Spec{Line: coord.Line{Dir: path}, Kind: "pair"}}, nil
}

func firstTwo(ahead []coord.Contender) (wait []int, granted bool) {
	n := len(ahead)
	if n < 2 {
		return nil, true
	}
	return []int{n - 1, n - 2}, false // any of the two before me may go first
}

// Acquire waits for a hold until ctx ends.
func (p *Pair) Acquire(ctx context.Context) (*coord.Hold, error) {
	return recipe.Acquire(ctx, p.client, &p.spec, firstTwo)
}

// Do runs f while holding.
func (p *Pair) Do(ctx context.Context, f func(context.Context, *coord.Hold) error) error {
	return hold.Do(ctx, p.Acquire, f)
}

func Example_pair() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := zkembed.Start() // in production, a ZooKeeper ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := coord.Open(ctx, srv.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	pair, err := NewPair(client, "/pair")
	if err != nil {
		log.Fatal(err)
	}
	err = pair.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
		return pair.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
			_, err := recipe.TryAcquire(ctx, client, &coord.Spec{Line: coord.Line{Dir: "/pair"}, Kind: "pair"}, firstTwo)
			return err
		})
	})
	fmt.Println(err)
	// Output: try /pair: held by another
}
