package barrier_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func Example() {
	ctx := context.Background()
	client, stop := coordtest.Connect(ctx)
	defer stop()

	b, err := barrier.New(client, "/jobs/report/input-complete")
	if err != nil {
		log.Fatal(err)
	}
	// The process that starts the job closes the barrier first.
	if err := b.Set(ctx); err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() {
		err := b.Wait(ctx) // a worker, in this process or another
		fmt.Println("the worker starts")
		done <- err
	}()
	fmt.Println("the input is complete")
	if err := b.Remove(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// the input is complete
	// the worker starts
}
