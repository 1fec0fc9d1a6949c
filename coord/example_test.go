package coord_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A recipe of one's own is a line, a kind and a rule. Here two may hold at a
// time, in the order of their arrival.
func ExampleClient_Acquire() {
	ctx := context.Background()
	srv, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := coord.Open(ctx, srv.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	pair := coord.Spec{Line: coord.Line{Dir: "/pair"}, Kind: "pair"}
	firstTwo := func(_ []coord.Contender, self int) (wait []int, granted bool) {
		if self < 2 {
			return nil, true
		}
		// Any of the two before me may go first.
		return []int{self - 1, self - 2}, false
	}
	for range 2 {
		h, err := client.TryAcquire(ctx, pair, firstTwo)
		if err != nil {
			log.Fatal(err)
		}
		defer h.Release(ctx)
	}
	_, err = client.TryAcquire(ctx, pair, firstTwo)
	fmt.Println(err)
	// Output: try /pair: held by another
}
