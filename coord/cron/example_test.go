package cron_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/zkembed"
)

// eachSecond is a schedule. Those that cron.ParseStandard of
// github.com/robfig/cron/v3 returns can be used instead.
type eachSecond struct{}

func (eachSecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := zkembed.Start() // in production, a ZooKeeper ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	// Every replica does this; each slot is run by one of them.
	slots := make(chan time.Time, 100)
	replica := func() {
		client, err := coord.Open(ctx, srv.ConnectString())
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close(context.Background())
		c, err := cron.New(client, "/cron/report", eachSecond{}, cron.MaxHold(time.Hour, time.Minute), cron.StopGrace(30*time.Second))
		if err != nil {
			log.Fatal(err)
		}
		err = c.Run(ctx, func(_ context.Context, s *cron.Slot) ([]byte, error) {
			slots <- s.At // give up when the context ends: then the hold is lost
			return nil, nil
		})
		if !errors.Is(err, context.Canceled) {
			log.Fatal(err)
		}
	}
	var replicas sync.WaitGroup
	for range 3 {
		replicas.Go(replica)
	}
	first := <-slots
	for range 2 {
		fmt.Println(<-slots == first.Add(time.Second))
		first = first.Add(time.Second)
	}
	cancel()
	replicas.Wait()
	// Output:
	// true
	// true
}

// Every night at half past two, also in the night in which the clocks go from
// two to three, and once in the night in which they go from three to two.
func ExampleWallClock() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	nightly := cron.WallClock(berlin, halfPastTwo{})
	t := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)
	for range 3 {
		t = nightly.Next(t)
		fmt.Println(t.In(berlin).Format("2 January 15:04 MST"))
	}
	// Output:
	// 28 March 02:30 CET
	// 29 March 03:00 CEST
	// 30 March 02:30 CEST
}

type halfPastTwo struct{}

func (halfPastTwo) Next(t time.Time) time.Time {
	next := time.Date(t.Year(), t.Month(), t.Day(), 2, 30, 0, 0, t.Location())
	if !next.After(t) {
		next = next.AddDate(0, 0, 1)
	}
	return next
}
