package slots_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/slots"
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

	workers, err := slots.New(client, "/ids/billing", 1024)
	if err != nil {
		log.Fatal(err)
	}
	err = workers.Do(ctx, func(ctx context.Context, slot *slots.Slot) error {
		fmt.Println("worker", slot.Number)
		return nil // give up when ctx ends: then another may have the number
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: worker 0
}

func ExampleDurable() {
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

	for _, host := range []string{"host1", "host2", "host2", "host1"} { // each is started twice
		s, err := slots.New(client, "/ids/billing", 1024, slots.Durable(host, time.Hour))
		if err != nil {
			log.Fatal(err)
		}
		slot, err := s.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(host, "is worker", slot.Number)
		if err := slot.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// host1 is worker 0
	// host2 is worker 1
	// host2 is worker 1
	// host1 is worker 0
}
