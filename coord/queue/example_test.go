package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
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

	q, err := queue.New(client, "/jobs", queue.DeadLetters(5))
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range []string{"resize a.png", "resize b.png"} {
		if err := q.Put(ctx, []byte(job)); err != nil {
			log.Fatal(err)
		}
	}
	if err := q.Put(ctx, []byte("send the invoice"), queue.Priority(1)); err != nil {
		log.Fatal(err)
	}

	working, stop := context.WithCancel(ctx) // in a service, by signal.NotifyContext
	left := 3
	err = q.Run(working, func(ctx context.Context, item *queue.Item) error {
		fmt.Printf("%s (delivery %d)\n", item.Data, item.Deliveries)
		left--
		if left == 0 {
			stop()
		}
		return nil // the item is removed; after an error it comes again, later
	})
	fmt.Println("ended:", errors.Is(err, context.Canceled))
	// Output:
	// send the invoice (delivery 1)
	// resize a.png (delivery 1)
	// resize b.png (delivery 1)
	// ended: true
}
