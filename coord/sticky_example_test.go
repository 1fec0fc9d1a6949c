package coord_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Sticky is a recipe of one's own: a mutex that prefers its last holder, whose
// caches are warm. Another that gets its turn waits a little for the last
// holder to ask again, and steps behind it if it does.
type Sticky struct {
	client *coord.Client
	line   coord.Line
	name   string // whose the lock is
	delay  time.Duration
	last   recipe.Record // who held last
}

// NewSticky returns the mutex at path for one that goes by a name.
func NewSticky(client *coord.Client, path, name string, delay time.Duration) (*Sticky, error) {
	line := coord.Line{Dir: path + "/line", Kinds: []string{"last", "other"}}
	return &Sticky{client, line, name, delay, recipe.NewRecord(client, path+"/last")}, recipe.Check(client, path)
}

// Acquire waits for the lock until ctx ends.
func (s *Sticky) Acquire(ctx context.Context) (*coord.Hold, error) {
	for {
		kind, err := s.kind(ctx)
		if err != nil {
			return nil, err
		}
		h, err := recipe.Acquire(ctx, s.client, &coord.Spec{Line: s.line, Kind: kind, Exclusive: true}, coord.First)
		if err != nil {
			return nil, err
		}
		asks, until := false, time.Now().Add(s.delay)
		if kind, err = s.kind(ctx); kind == "other" && err == nil {
			err = s.client.Wait(h.Context(ctx), func(v *coord.View) (done bool, err error) {
				v.RecheckAt(until)
				nodes, err := v.ChildrenIfAny(s.line.Dir)
				asks = slices.ContainsFunc(s.line.Order(nodes, s.client.Info().Dialect), func(c coord.Contender) bool { return c.Kind == "last" })
				return asks || !time.Now().Before(until), err
			})
		}
		if err == nil && !asks {
			err = recipe.Retry(ctx, s.client, func(ctx context.Context) error {
				return s.last.Change(ctx, h.Txn, func([]byte, coord.Stat) ([]byte, error) { return []byte(s.name), nil })
			})
		}
		if err == nil && !asks {
			return h, nil
		}
		h.Abandon()
		if err != nil {
			return nil, recipe.Failure(s.client, "acquire", s.line.Dir, err)
		}
	}
}

// kind returns the kind of a claim now: the last holder's, or another's.
func (s *Sticky) kind(ctx context.Context) (kind string, err error) {
	err = s.client.Synced().Wait(ctx, func(v *coord.View) (bool, error) {
		last, stat, err := s.last.Look(v, nil)
		kind = "other"
		if stat.Czxid == 0 || string(last) == s.name {
			kind = "last"
		}
		return true, err
	})
	return kind, err
}

func ExampleRecord_Change() {
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := coord.Open(ctx, server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	for _, name := range []string{"ann", "ann", "bob"} {
		lock, err := NewSticky(client, "/cache", name, 10*time.Millisecond)
		if err != nil {
			log.Fatal(err)
		}
		h, err := lock.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, "holds")
		if err := h.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// ann holds
	// ann holds
	// bob holds
}
