// Limit: a licence allows two users at a time, and each user has a seat of its
// own, 0 or 1. Three replicas want one; one of the two that have a seat is
// killed, and the third one gets it. Where the number does not matter, package
// semaphore does the same without.
//
//	go run ./examples/limit
package main

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "has seat", End: "has seat", Times: 2}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	seats, err := slots.New(r.Client, "/example/licences", 2, slots.StopGrace(30*time.Second))
	if err != nil {
		return err
	}
	return seats.Do(ctx, func(ctx context.Context, seat *slots.Slot) error {
		r.Say("has seat %d", seat.Number)
		select {
		case <-time.After(10 * time.Minute): // the work
		case <-ctx.Done(): // the seat is lost, or the program ends
			r.Say("stops: %v", context.Cause(ctx))
		}
		return nil
	})
}
