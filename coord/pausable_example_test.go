package coord_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Pausable is a recipe of one's own: a mutex that nobody is granted while the
// node pause exists. Only the first in line watches that node.
type Pausable struct {
	client *coord.Client
	spec   coord.Spec
	pause  string
}

// NewPausable returns the mutex at path. A node at pause pauses it.
func NewPausable(client *coord.Client, path, pause string) (*Pausable, error) {
	spec := coord.Spec{Line: coord.Line{Dir: path}, Kind: "pausable", Exclusive: true}
	return &Pausable{client, spec, pause}, cmp.Or(recipe.Check(client, path), recipe.Check(client, pause))
}

// Acquire waits for a hold until ctx ends. A claim that is lost while it waits
// for the end of the pause fails with [coord.ErrLost].
func (p *Pausable) Acquire(ctx context.Context) (*coord.Hold, error) {
	h, err := recipe.Acquire(ctx, p.client, &p.spec, coord.First)
	if err != nil {
		return nil, err
	}
	err = p.client.Synced().Wait(ctx, func(v *coord.View) (granted bool, err error) {
		v.RecheckOn(h.Done())
		_, _, err = v.Get(p.pause)
		if errors.Is(err, coord.ErrNoNode) {
			return true, h.Err()
		}
		return false, cmp.Or(err, h.Err())
	})
	if err != nil {
		h.Abandon()
		return nil, recipe.Failure(p.client, "acquire", p.spec.Line.Dir, err)
	}
	return h, nil
}

func ExampleClient_Synced() {
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

	backup, err := NewPausable(client, "/backup", "/maintenance")
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Create(ctx, "/maintenance", nil); err != nil {
		log.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = backup.Acquire(soon)
	fmt.Println(err)
	if err := client.Delete(ctx, "/maintenance", -1); err != nil {
		log.Fatal(err)
	}
	h, err := backup.Acquire(ctx)
	fmt.Println(h.Token() > 0, err)
	// Output:
	// acquire /backup: context deadline exceeded
	// true <nil>
}
