package gocron_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	zkgocron "github.com/zkcoord/zkcoord/contrib/gocron"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Every replica does this.
func ExampleLocker() {
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

	ledger, err := once.New(client, "/jobs/reports", once.Keep(24*time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	locker, err := zkgocron.NewLocker(ledger, time.Minute) // the crontab's instants are full minutes
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithStopTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan bool)
	report := func() { close(done) }
	job, err := scheduler.NewJob(gocron.CronJob("30 4 * * *", false), gocron.NewTask(report), gocron.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	_ = job.RunNow() // instead of waiting for the morning
	<-done
	fmt.Println("reported:", scheduler.Shutdown() == nil)
	// Output: reported: true
}

// Every replica does this.
func ExampleElector() {
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

	e, err := election.New(client, "/services/reports/leader")
	if err != nil {
		log.Fatal(err)
	}
	elector := zkgocron.NewElector(e)
	standing, resign := context.WithCancel(ctx)
	resigned := make(chan error)
	go func() { resigned <- elector.Run(standing, nil) }()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan bool, 1)
	report := func() {
		term := elector.Term() // nil if it was lost since
		done <- term != nil && term.Token() > 0
	}
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(report))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println("reported with a token:", <-done)
	_ = scheduler.Shutdown()
	resign() // after the last job
	fmt.Println(<-resigned)
	// Output:
	// reported with a token: true
	// run /services/reports/leader: context canceled
}
