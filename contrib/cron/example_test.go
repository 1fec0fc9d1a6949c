package cron_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/robfig/cron/v3"

	zkcron "github.com/zkcoord/zkcoord/contrib/cron"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Every replica does this.
func ExampleOnce() {
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
	waiting, giveUp := context.WithCancel(ctx)
	daily, err := zkcron.Once(waiting, ledger, "report", time.Minute, cron.DefaultLogger)
	if err != nil {
		log.Fatal(err)
	}
	crontab := cron.New(cron.WithChain(cron.Recover(cron.DefaultLogger)))
	id, err := crontab.AddJob("30 4 * * *", cron.NewChain(daily).Then(cron.FuncJob(func() { fmt.Println("reported") })))
	if err != nil {
		log.Fatal(err)
	}
	crontab.Start()
	crontab.Entry(id).WrappedJob.Run() // instead of waiting for the morning
	giveUp()                           // what other replicas run
	<-crontab.Stop().Done()
	// Output: reported
}
