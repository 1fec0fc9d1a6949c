package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// nodes is where a client's queue has its nodes, and what users of the queue
// read of them.
type nodes struct{ store.Nodes }

func nodesOf(c *coord.Client, path string) nodes { return nodes{store.At(c, path)} }

// list lists the entries and the claims, without a watch.
func (l nodes) list(ctx context.Context) (entries, claims []string, err error) {
	err = store.Concurrently(
		func() (err error) { entries, err = l.Client.Children(ctx, l.Entries); return err },
		func() (err error) { claims, err = l.Client.Children(ctx, l.Taken); return err },
	)
	return entries, claims, err
}

// free lists the items that no consumer has.
func (l nodes) free(ctx context.Context) ([]string, error) {
	entries, claims, err := l.list(ctx)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil // never used
	}
	return store.Unclaimed(entries, claims), err
}

// reader reads a node, by [coord.Client.Get] for instance.
type reader = func(ctx context.Context, path string) ([]byte, coord.Stat, error)

// stat is a reader that leaves the data out.
func (l nodes) stat(ctx context.Context, path string) ([]byte, coord.Stat, error) {
	stat, there, err := l.Client.Exists(ctx, path)
	if err == nil && !there {
		err = coord.ErrNoNode
	}
	return nil, stat, err
}

func anyName(string) bool { return true }

// readAll reads the nodes in a directory, which may be missing, in order.
func (l nodes) readAll(ctx context.Context, dir string, is func(name string) bool, read reader) ([]store.Entry, error) {
	names, err := l.Client.Children(ctx, dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !is(name) })
	slices.Sort(names)
	return l.readEach(ctx, dir, names, read)
}

// readEach reads the nodes of these names in a directory, and leaves out nodes
// that are gone.
func (l nodes) readEach(ctx context.Context, dir string, names []string, read reader) ([]store.Entry, error) {
	all, reads := make([]store.Entry, len(names)), []func() error{}
	for i, name := range names {
		reads = append(reads, func() error {
			data, stat, err := read(ctx, dir+"/"+name)
			if err == nil {
				all[i] = store.Entry{Name: name, Data: data, Stat: stat}
			} else if errors.Is(err, coord.ErrNoNode) {
				err = nil
			}
			return err
		})
	}
	err := store.Concurrently(reads...)
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.Name == "" }), err
}
