// Shards: three replicas share six tenants, each of which has one owner at a
// time. One replica is killed, and the others take its tenants over.
//
//	go run ./examples/shards
package main

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "serves", End: "serves", Times: 6}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	s, err := shards.New(r.Client, "/example/tenants", shards.ID(r.Name),
		shards.Keys("ants", "bees", "cats", "dogs", "emus", "frogs"))
	if err != nil {
		return err
	}
	// A service that is stopped by a signal calls s.Leave first, so that no key
	// is cut off: see docs/starting.md.
	return s.Run(ctx, func(ctx context.Context, tenant string, h coord.Held) error {
		r.Say("serves the %s, with token %d", tenant, h.Token())
		select {
		case <-shards.Draining(ctx): // finish, and let another replica serve it
		case <-ctx.Done():
		}
		return nil
	})
}
