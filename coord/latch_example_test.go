package coord_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Latch is a recipe of one's own: it opens when n parties have counted down,
// and stays open.
type Latch struct {
	client *coord.Client
	path   string
	n      int
}

// NewLatch returns the latch at path.
func NewLatch(client *coord.Client, path string, n int) (*Latch, error) {
	return &Latch{client, path, n}, recipe.Check(client, path)
}

// CountDown counts a party, once: the same name again changes nothing, and so
// it repeats itself over lost connections.
func (l *Latch) CountDown(ctx context.Context, party string) error {
	err := recipe.Retry(ctx, l.client, func(ctx context.Context) error {
		return l.client.Create(ctx, l.path+"/"+party, nil)
	})
	if errors.Is(err, coord.ErrNodeExists) {
		return nil
	}
	return err
}

// Wait returns when the latch is open.
func (l *Latch) Wait(ctx context.Context) error {
	err := l.client.Wait(ctx, func(v *coord.View) (open bool, err error) {
		parties, err := v.ChildrenIfAny(l.path)
		return len(parties) >= l.n, err
	})
	return recipe.Failure(l.client, "wait", l.path, err)
}

func ExampleClient_Wait() {
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

	latch, err := NewLatch(client, "/loaded", 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, table := range []string{"customers", "orders"} {
		go func() {
			if err := latch.CountDown(ctx, table); err != nil {
				log.Fatal(err)
			}
		}()
	}
	if err := latch.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("both tables are loaded")
	// Output: both tables are loaded
}
