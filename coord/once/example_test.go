package once_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
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

	// Every replica does this when it starts; one of them migrates.
	jobs, err := once.New(client, "/jobs/migrations")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		res, err := jobs.Do(ctx, "v42", func(context.Context, *once.Run) ([]byte, error) {
			fmt.Println("migrating")
			return []byte("17 tables"), nil // give up when ctx ends: then the hold is lost
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", res.State, res.Data)
	}
	// Output:
	// migrating
	// done: 17 tables
	// done: 17 tables
	// done: 17 tables
}

func ExampleAttempts() {
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

	// At most once: no payment is sent again because its sender crashed.
	payments, err := once.New(client, "/payments", once.Attempts(1, 0), once.Keep(90*24*time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	pay := func(context.Context, *once.Run) ([]byte, error) { return nil, errors.New("no funds") }
	_, err = payments.Do(ctx, "7", pay)
	fmt.Println(err)
	_, err = payments.Do(ctx, "7", pay)
	fmt.Println(err)
	// Output:
	// do /payments: "7", attempt 1: no funds
	// do /payments: all attempts have failed: "7", attempt 1: no funds
}
