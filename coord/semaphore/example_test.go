package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
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

	// At most five at a time, in all processes together.
	s, err := semaphore.New(client, "/limits/licence", 5)
	if err != nil {
		log.Fatal(err)
	}
	err = s.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
		fmt.Println("compiling")
		return nil // give up when ctx ends: then the lease is lost
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: compiling
}

func ExampleSemaphore_AcquireN() {
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
	s, err := semaphore.New(client, "/limits/bandwidth", 10)
	if err != nil {
		log.Fatal(err)
	}
	heavy, err := s.AcquireN(ctx, 8) // all or none
	if err != nil {
		log.Fatal(err)
	}
	defer heavy.Release(ctx)
	_, err = s.TryAcquireN(ctx, 3)
	fmt.Println("three more are free:", !errors.Is(err, coord.ErrBusy))
	light, err := s.TryAcquireN(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer light.Release(ctx)
	fmt.Println("two more are held:", light.Err() == nil)
	// Output:
	// three more are free: false
	// two more are held: true
}

func ExampleSemaphore_SetLimit() {
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
	// Programs that follow the stored limit need no new configuration when an
	// operator changes it.
	s, err := semaphore.New(client, "/limits/licence", semaphore.Stored)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.SetLimit(ctx, 2); err != nil {
		log.Fatal(err)
	}
	fixed, err := semaphore.New(client, "/limits/licence", 3)
	if err != nil {
		log.Fatal(err)
	}
	_, err = fixed.Acquire(ctx)
	fmt.Println(err)
	// Output: acquire /limits/licence: the clients disagree: /limits/licence/limit says 2, this program 3
}
