package cron_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Package coord/cron takes the schedules that robfig/cron parses. Every replica
// does this; each slot is run by one of them.
func Example_schedule() {
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
	defer client.Close(context.Background())

	full := func(context.Context, time.Time, int64) error { return errors.New("the disk is full") }
	err = reports(ctx, client, "@every 1s", full, cancel)
	fmt.Println("ended by the shutdown:", errors.Is(err, context.Canceled))
	// Output:
	// not written: the disk is full
	// ended by the shutdown: true
}

func reports(
	ctx context.Context, client *coord.Client, crontab string, write func(ctx context.Context, at time.Time, token int64) error, alert func(),
) error {
	schedule, err := robfig.ParseStandard(crontab) // such as "30 4 * * *"
	if err != nil {
		return err
	}
	c, err := cron.New(client, "/cron/report", schedule,
		cron.MaxHold(time.Hour, time.Minute), cron.StopGrace(30*time.Second),
		cron.OnEnd(func(slot once.Result, err error) {
			if err != nil {
				fmt.Println("not written:", err)
				alert()
			}
		}))
	if err != nil {
		return err
	}
	return c.Run(ctx, func(ctx context.Context, s *cron.Slot) ([]byte, error) {
		return nil, write(ctx, s.At, s.Token())
	})
}
