package coord_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A server may lag behind the others. What a fresh client reads is at least as
// new as all that was committed before its first read: here, what another
// client wrote.
func ExampleClient_Synced_read() {
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

	if err := client.Create(ctx, "/config/limit", []byte("10")); err != nil {
		log.Fatal(err)
	}
	limit, _, err := client.Synced().Get(ctx, "/config/limit") // one empty write, and the read
	fmt.Println(string(limit), err)
	// Output: 10 <nil>
}
