// Leader: of three replicas one leads. The first leader is killed; the second
// one falls ill, notices, and resigns.
//
//	go run ./examples/leader
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "leads, ", End: "leads, ", Times: 2}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	var ill atomic.Bool
	check := func(context.Context) error { // of what the leader needs: a disk, a database
		if ill.Load() {
			return errors.New("the disk is full")
		}
		return nil
	}
	e, err := election.New(r.Client, "/example/leader",
		election.Health(100*time.Millisecond, 3, check), election.StopGrace(30*time.Second))
	if err != nil {
		return err
	}
	return e.Run(ctx, []byte(r.Name), func(ctx context.Context, t *election.Term) error {
		r.Say("leads, with token %d", t.Token())
		time.AfterFunc(500*time.Millisecond, func() { ill.Store(true) })
		<-ctx.Done() // work until the term is over
		r.Say("does not lead any more: %v", context.Cause(ctx))
		return nil
	})
}
