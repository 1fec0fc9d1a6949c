package coord_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Membership is a recipe of one's own: who is there.
type Membership struct {
	client *coord.Client
	line   coord.Line
}

// NewMembership returns the membership at path.
func NewMembership(client *coord.Client, path string) (*Membership, error) {
	return &Membership{client, coord.Line{Dir: path}}, recipe.Check(client, path)
}

// Join is there, under a name, until ctx ends. It joins again when its session
// or its node is lost.
func (m *Membership) Join(ctx context.Context, name string) error {
	for {
		h, _, err := m.client.Stand(ctx, coord.Spec{Line: m.line, Kind: "member", Data: []byte(name), Unlisted: true})
		if err != nil {
			return err
		}
		select {
		case <-h.Done():
		case <-ctx.Done():
			return h.Release(ctx)
		}
	}
}

// Members yields the names of those who are there, now and at each change.
func (m *Membership) Members(ctx context.Context) iter.Seq2[[]string, error] {
	client := m.client.Fresh()
	return recipe.Observe(ctx, client, m.line.Dir, func(v *coord.View) (members []string, err error) {
		nodes, err := v.Dir(m.line.Dir)
		for _, c := range m.line.Order(nodes, client.Dialect()) {
			name, _, gone := v.Get(m.line.Dir + "/" + c.Name)
			if errors.Is(gone, coord.ErrNoNode) {
				continue
			} else if gone != nil {
				return nil, gone
			}
			members = append(members, string(name))
		}
		return members, err
	}, slices.Equal)
}

func ExampleObserve() {
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

	crew, err := NewMembership(client, "/crew")
	if err != nil {
		log.Fatal(err)
	}
	here, leave := context.WithCancel(ctx)
	defer leave()
	left := make(chan error, 1)
	for members, err := range crew.Members(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("there:", members)
		if len(members) == 0 && here.Err() != nil {
			break
		}
		if len(members) == 0 {
			go func() { left <- crew.Join(here, "ann") }()
		} else {
			leave()
		}
	}
	fmt.Println(<-left)
	// Output:
	// there: []
	// there: [ann]
	// there: []
	// <nil>
}
