// Workers: three workers share the jobs of a queue. One of them is killed with
// a job in hand, which another one does.
//
//	go run ./examples/workers
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/examples/stage"
)

const jobs = 6

func main() {
	stage.Play(stage.Scene{Setup: put, Kill: "takes", End: "has done", Times: jobs}, worker)
}

func put(ctx context.Context, client *coord.Client) error {
	q, err := queue.New(client, "/example/jobs")
	if err != nil {
		return err
	}
	for i := range jobs {
		if err := q.Put(ctx, fmt.Appendf(nil, "job %d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

// worker works until ctx ends, and finishes the job in hand before it returns.
func worker(ctx context.Context, r *stage.Replica) error {
	q, err := queue.New(r.Client, "/example/jobs")
	if err != nil {
		return err
	}
	return q.Run(ctx, func(ctx context.Context, item *queue.Item) error {
		r.Say("takes %s, delivery %d", item.Data, item.Deliveries)
		select {
		case <-time.After(200 * time.Millisecond): // the work
			r.Say("has done %s", item.Data)
			return nil
		case <-ctx.Done(): // another worker may have the job
			return context.Cause(ctx)
		}
	})
}
