// Migrations: three replicas start, and one of them migrates the database. It
// is killed, another one migrates, and the third one finds it done.
//
//	go run ./examples/migrations
package main

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "migrates"}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	jobs, err := once.New(r.Client, "/example/migrations", once.StopGrace(30*time.Second))
	if err != nil {
		return err
	}
	res, err := jobs.Do(ctx, "v42", func(ctx context.Context, run *once.Run) ([]byte, error) {
		r.Say("migrates, attempt %d", run.Attempt)
		select {
		case <-time.After(500 * time.Millisecond): // the work
			return []byte("17 tables by " + r.Name), nil
		case <-ctx.Done(): // another replica may migrate
			return nil, context.Cause(ctx)
		}
	})
	if err != nil {
		return err
	}
	r.Say("starts; migrated: %s", res.Data)
	return nil
}
