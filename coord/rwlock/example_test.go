package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The recommended way in: readers share, a writer is alone.
func ExampleLock() {
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

	l, err := rwlock.New(client, "/config/lock")
	if err != nil {
		log.Fatal(err)
	}
	err = l.DoWrite(ctx, func(ctx context.Context, h *coord.Hold) error {
		return publish(ctx, h.Token())
	})
	if err != nil {
		log.Fatal(err)
	}
	err = l.DoRead(ctx, func(ctx context.Context, _ *coord.Hold) error {
		return serve(ctx)
	})
	fmt.Println(err)
	// Output:
	// published with a token: true
	// served
	// <nil>
}

func publish(_ context.Context, token int64) error {
	fmt.Println("published with a token:", token > 0)
	return nil
}

func serve(context.Context) error {
	fmt.Println("served")
	return nil
}

// A writer that goes on as a reader lets other readers in, but no writer
// between what it wrote and what it reads.
func ExampleLock_AcquireWrite_downgrade() {
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

	l, err := rwlock.New(client, "/config/lock")
	if err != nil {
		log.Fatal(err)
	}
	w, err := l.AcquireWrite(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Release(ctx) // does nothing after the downgrade
	if err := publish(w.Context(ctx), w.Token()); err != nil {
		log.Fatal(err)
	}
	r, err := rwlock.Downgrade(ctx, w)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Release(ctx)
	_, err = l.TryAcquireWrite(ctx)
	fmt.Println("a writer:", err)
	other, err := l.TryAcquireRead(ctx)
	fmt.Println("a reader:", err)
	defer other.Release(ctx)
	// Output:
	// published with a token: true
	// a writer: try /config/lock: held by another
	// a reader: <nil>
}

// An upgrade would wait for itself.
func ExampleLock_AcquireWrite_upgrade() {
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

	l, err := rwlock.New(client, "/config/lock")
	if err != nil {
		log.Fatal(err)
	}
	err = l.DoRead(ctx, func(ctx context.Context, _ *coord.Hold) error {
		_, err := l.AcquireWrite(ctx)
		return err
	})
	fmt.Println(errors.Is(err, coord.ErrInvalid))
	// Output: true
}
