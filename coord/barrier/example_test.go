package barrier_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

func Example() {
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
	if err := b.Open(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// the input is complete
	// the worker starts
}
