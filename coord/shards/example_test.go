package shards_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
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

	s, err := shards.New(client, "/shards/orders", shards.Keys("berlin", "paris"), shards.Data([]byte("10.1.2.3:8080")))
	if err != nil {
		log.Fatal(err)
	}
	owned := make(chan string)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(ctx context.Context, key string, h coord.Held) error {
			owned <- key
			// Work for the key until it is to move, or is lost. The token
			// fences what is written.
			select {
			case <-shards.Draining(ctx):
			case <-ctx.Done():
			}
			return nil
		})
	}()
	<-owned
	<-owned
	owner, err := s.Owner(ctx, "paris")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("paris is at %s\n", owner.Member.Data)
	// Before a planned stop: all keys are drained, and move.
	fmt.Println(s.Leave(ctx), <-ended)
	// Output:
	// paris is at 10.1.2.3:8080
	// <nil> <nil>
}

func ExampleRangeOf() {
	const n = 256 // as in the option shards.Ranges(256)
	fmt.Println(shards.RangeOf("customer 4711", n))
	// Output: range-183
}
