package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The recommended way in: what must not happen twice runs inside Do, with a
// context that ends if the lock is lost, and a token for the resource.
func ExampleMutex_Do() {
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

	m, err := lock.New(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = m.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
		fmt.Println("writing the report with a token:", h.Token() > 0, ctx.Err())
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// writing the report with a token: true <nil>
	// done: <nil>
}

// A try does not wait.
func ExampleMutex_TryAcquire() {
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

	m, err := lock.New(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	h, err := m.TryAcquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = m.TryAcquire(ctx)
	fmt.Println(err)
	fmt.Println(h.Release(ctx))
	// Output:
	// try /locks/report: held by another
	// <nil>
}

// The hold's transaction writes only while the lock is held, regardless of
// pauses before.
func ExampleMutex_Acquire_transaction() {
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

	if err := client.Create(ctx, "/config", nil); err != nil {
		log.Fatal(err)
	}
	m, err := lock.New(client, "/locks/config")
	if err != nil {
		log.Fatal(err)
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)
	_, err = h.Txn(ctx, coord.SetOp("/config", []byte("version 2"), -1))
	fmt.Println(err)
	// Output: <nil>
}

// The README's example.
func publishOnOneHost(ctx context.Context) error {
	connecting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := coord.Open(connecting, "zk1:2181,zk2:2181,zk3:2181/app")
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	m, err := lock.New(client, "/locks/site")
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
		// ctx ends if the lock is lost; the token fences the resource.
		return publish(ctx, h.Token())
	})
}

func publish(context.Context, int64) error { return nil }

var _ = publishOnOneHost

// Goroutines that share a mutex hand it on in memory.
func ExampleLocalQueue() {
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
	m, err := lock.New(client, "/locks/report", lock.LocalQueue(100, time.Second), lock.Linger(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	var nodes []string
	for range 3 {
		err := m.Do(ctx, func(_ context.Context, h *coord.Hold) error {
			nodes = append(nodes, h.Node())
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("one node:", nodes[0] == nodes[1] && nodes[1] == nodes[2])
	// Output: one node: true
}

// A holder that hangs in its own code loses the lock all the same.
func ExampleMaxHold() {
	open := func(client *coord.Client) (*lock.Mutex, error) {
		m, err := lock.New(client, "/locks/report", lock.MaxHold(10*time.Minute, 30*time.Second))
		return m, err
	}
	_ = open
}

// After a holder's unclean end the next one waits.
func ExampleDelay() {
	open := func(client *coord.Client) (*lock.Mutex, error) {
		m, err := lock.New(client, "/locks/report", lock.Delay(15*time.Second))
		return m, err
	}
	_ = open
}
