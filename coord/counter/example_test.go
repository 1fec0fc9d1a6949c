package counter_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
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

	orders, err := counter.New(client, "/counters/orders")
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		number, err := orders.Add(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("order", number)
	}
	// Output:
	// order 1
	// order 2
}
