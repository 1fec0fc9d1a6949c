package election_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/election/probe"
	"github.com/zkcoord/zkcoord/zkembed"
)

func Example() {
	ctx, shutdown := context.WithTimeout(context.Background(), time.Minute)
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

	e, err := election.New(client, "/services/billing/leader", election.StopGrace(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(ctx, []byte("10.1.2.3:8080"), func(ctx context.Context, t *election.Term) error {
		fmt.Println("leading with a token:", t.Token() > 0)
		shutdown()   // for the example; a service would work here
		<-ctx.Done() // until its term is over, or the process is told to end
		return ctx.Err()
	})
	fmt.Println("ended by the shutdown:", errors.Is(err, context.Canceled))
	// Output:
	// leading with a token: true
	// ended by the shutdown: true
}

func ExampleElection_Observe() {
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
	e, err := election.New(client, "/services/billing/leader")
	if err != nil {
		log.Fatal(err)
	}
	term, err := e.Campaign(ctx, []byte("10.1.2.3:8080"))
	if err != nil {
		log.Fatal(err)
	}
	resign := func() {
		if err := term.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	for leader, err := range e.Observe(ctx) {
		if err != nil {
			log.Fatal(err) // the last: ctx has ended, for instance
		}
		if leader.None() {
			fmt.Println("nobody leads")
			break
		}
		fmt.Printf("%s leads\n", leader.Data)
		resign() // for the example
	}
	// Output:
	// 10.1.2.3:8080 leads
	// nobody leads
}

func ExampleHealth() {
	mux := http.NewServeMux()
	replica := func(ctx context.Context, client *coord.Client, db *sql.DB, serve func(context.Context, *election.Term) error) error {
		e, err := election.New(client, "/services/billing/leader",
			election.Health(10*time.Second, 3, func(ctx context.Context) error { return db.PingContext(ctx) }),
			election.StopGrace(30*time.Second)) // a leader that hangs is relieved
		if err != nil {
			return err
		}
		mux.Handle("/", probe.Handler(e)) // /healthz, /readyz, /leader
		return e.Run(ctx, nil, serve)
	}
	_ = replica
}

func ExamplePriority() {
	open := func(client *coord.Client, zone int) (*election.Election, error) {
		e, err := election.New(client, "/services/billing/leader", election.Priority(zone))
		return e, err
	}
	_ = open
}

func ExampleTerm_Transfer() {
	toTheLast := func(ctx context.Context, e *election.Election, term *election.Term) error {
		line, err := e.Contenders(ctx)
		if err != nil {
			return err
		}
		return term.Transfer(ctx, line[len(line)-1].Node)
	}
	_ = toTheLast
}
