// Package store is how a queue is stored: where its nodes are, how they are
// read, and what an item's name and version say.
package store

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Nodes is where a client's queue has its nodes.
type Nodes struct {
	Client *coord.Client
	layout.QueueNodes
}

// At returns the nodes of the queue at path.
func At(c *coord.Client, path string) Nodes {
	return Nodes{c, layout.QueueAt(c.Info().Dialect, path)}
}

// Entry is the path of an item's node.
func (n Nodes) Entry(name string) string { return n.Entries + "/" + name }

// Claim is the path of an item's claim.
func (n Nodes) Claim(name string) string { return n.Taken + "/" + name }

// Ensure makes the queue's directories, and others, which are persistent, as
// Kazoo makes them: an empty queue stays.
func (n Nodes) Ensure(ctx context.Context, others ...string) error {
	for _, dir := range append(others, n.Taken, n.Entries) {
		err := recipe.Retry(ctx, n.Client, func(ctx context.Context) error { return n.Client.Create(ctx, dir, []byte{}) })
		if err != nil && !errors.Is(err, coord.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// Entry is an item's node as it was read.
type Entry struct {
	Name string
	Data []byte
	Stat coord.Stat

	Acknowledged string // of a letter that is to be removed: the node that says so, or ""
}

// Deliveries is how often the item was delivered.
func (e Entry) Deliveries() int { return Deliveries(e.Stat.Version) }

// Deliveries is how often an item of this version was delivered: the version is
// 2n-1 from the n-th claim on, and 2n once the item was given back. Then the
// entry was last modified by the claim, or by the Nack.
func Deliveries(version int32) int { return (int(version) + 1) / 2 }

// Get reads an item.
func (n Nodes) Get(ctx context.Context, name string) (Entry, error) {
	data, stat, err := n.Client.Get(ctx, n.Entry(name))
	if data == nil {
		data = []byte{} // also when it is put again: Kazoo cannot read a node without data
	}
	return Entry{Name: name, Data: data, Stat: stat}, err
}

// Unclaimed returns the entries without a claim in order: by priority, then by
// age.
func Unclaimed(entries, claims []string) []string {
	claimed := make(map[string]bool, len(claims))
	for _, name := range claims {
		claimed[name] = true
	}
	free := make([]string, 0, len(entries))
	for _, name := range entries {
		if IsItem(name) && !claimed[name] {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	return free
}

// atATime is how many requests are under way at the same time, at most.
const atATime = 128

// Concurrently calls the functions, at most 128 of them at the same time.
func Concurrently(fs ...func() error) error {
	errs := make([]error, len(fs))
	for some := 0; some < len(fs); some += atATime {
		var calls sync.WaitGroup
		for i, f := range fs[some:min(some+atATime, len(fs))] {
			calls.Go(func() { errs[some+i] = f() })
		}
		calls.Wait()
	}
	return recipe.Joined(errs...)
}
