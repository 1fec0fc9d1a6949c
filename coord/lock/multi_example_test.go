package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Several locks as one: a transfer between two accounts locks both, in any
// order of their names, and reads the rates meanwhile.
func ExampleMulti() {
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

	from, err := lock.New(client, "/accounts/7")
	if err != nil {
		log.Fatal(err)
	}
	to, err := lock.New(client, "/accounts/3")
	if err != nil {
		log.Fatal(err)
	}
	rates, err := rwlock.New(client, "/rates")
	if err != nil {
		log.Fatal(err)
	}
	all, err := lock.NewMulti(from, to, rates.ReadSide())
	if err != nil {
		log.Fatal(err)
	}
	err = all.Do(ctx, func(ctx context.Context, s *hold.Set) error {
		fmt.Println("holding", len(s.Holds()), "locks:", ctx.Err())
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// holding 3 locks: <nil>
	// done: <nil>
}
