package queue_test

import (
	"context"
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

	q, err := queue.New(client, "/jobs", queue.WithDeadLetters(5))
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range []string{"resize a.png", "resize b.png"} {
		if err := q.Put(ctx, []byte(job)); err != nil {
			log.Fatal(err)
		}
	}
	if err := q.Put(ctx, []byte("send the invoice"), queue.WithPriority(1)); err != nil {
		log.Fatal(err)
	}

	for range 3 {
		item, err := q.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s (delivery %d)\n", item.Data, item.Deliveries)
		if err := item.Ack(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// send the invoice (delivery 1)
	// resize a.png (delivery 1)
	// resize b.png (delivery 1)
}
