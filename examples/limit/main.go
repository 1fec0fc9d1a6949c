// Limit: a licence allows two users at a time. Three replicas want it; one of
// the two that have it is killed, and the third one gets it.
//
//	go run ./examples/limit
package main

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/examples/internal/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "uses the licence", End: "uses the licence", Times: 2}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	licences, err := semaphore.New(r.Client, "/example/licences", 2)
	if err != nil {
		return err
	}
	return recipe.Do(ctx, licences.Acquire, func(ctx context.Context, _ *coord.Hold) error {
		r.Say("uses the licence")
		select {
		case <-time.After(10 * time.Minute): // the work
		case <-ctx.Done(): // the lease is lost, or the program ends
			r.Say("stops: %v", context.Cause(ctx))
		}
		return nil
	})
}
