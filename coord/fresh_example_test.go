package coord_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// A server may lag behind the others. What a fresh client reads is at least as
// new as all that was committed before its first read: here, what another
// client wrote.
func ExampleClient_Fresh_read() {
	ctx := context.Background()
	client, stop := coordtest.Connect(ctx)
	defer stop()

	if err := client.Create(ctx, "/config/limit", []byte("10")); err != nil {
		log.Fatal(err)
	}
	limit, _, err := client.Fresh().Get(ctx, "/config/limit") // one empty write, and the read
	fmt.Println(string(limit), err)
	// Output: 10 <nil>
}
