package coord_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// An observer hears of every event, from many goroutines: it counts, and does
// not block. Packages contrib/prom and contrib/otel are made of one.
func ExampleWithObserver() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	var granted, lost atomic.Int64
	client, err := coord.Open(ctx, srv.ConnectString(), coord.WithObserver(func(e event.Event) {
		switch e.Kind {
		case event.Granted: // after e.Took
			granted.Add(1)
		case event.Ended: // e.Err says how
			if !errors.Is(e.Err, coord.ErrReleased) {
				lost.Add(1)
			}
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	m, err := lock.New(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := m.Do(ctx, func(context.Context, *coord.Hold) error { return nil }); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(granted.Load(), "granted,", lost.Load(), "lost")
	// Output: 3 granted, 0 lost
}
