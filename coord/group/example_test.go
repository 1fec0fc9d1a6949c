package group_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/group"
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

	g, err := group.New(client, "/services/billing/members")
	if err != nil {
		log.Fatal(err)
	}
	here, leave := context.WithCancel(ctx)
	defer leave()
	left := make(chan error, 1)
	go func() { left <- g.Stay(here, "host1", []byte("10.1.2.3:8080")) }()
	for members, err := range g.Observe(ctx) {
		if err != nil {
			log.Fatal(err) // the last: ctx has ended, for instance
		}
		for _, m := range members {
			fmt.Printf("%s is at %s\n", m.ID, m.Data)
			time.AfterFunc(time.Second, leave) // for the example
		}
		if here.Err() != nil && len(members) == 0 {
			break
		}
	}
	fmt.Println(errors.Is(<-left, context.Canceled))
	// Output:
	// host1 is at 10.1.2.3:8080
	// true
}
