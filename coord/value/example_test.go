package value_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/value"
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

	blocked, err := value.New(client, "/config/blocked")
	if err != nil {
		log.Fatal(err)
	}
	for _, host := range []string{"mallory.example", "spam.example"} {
		err := blocked.Change(ctx, func(now value.State) ([]byte, error) {
			return append(bytes.Clone(now.Data), host+"\n"...), nil // called again if another was faster
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for now, err := range blocked.Observe(ctx) {
		if err != nil {
			log.Fatal(err) // the last: ctx has ended, for instance
		}
		fmt.Printf("%s", now.Data)
		break // for the example
	}
	// Output:
	// mallory.example
	// spam.example
}
