package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// layout is where a client's queue has its nodes.
type nodes struct {
	client *coord.Client
	path   string
	at     layout.QueueNodes
}

func nodesOf(c *coord.Client, path string) nodes {
	return nodes{c, path, layout.QueueAt(c.Info().Dialect, path)}
}

func (l nodes) entry(name string) string { return l.at.Entries + "/" + name }
func (l nodes) claim(name string) string { return l.at.Taken + "/" + name }

// ensure makes the queue's directories, and others, which are persistent, as
// Kazoo makes them: an empty queue stays.
func (l nodes) ensure(ctx context.Context, others ...string) error {
	for _, dir := range append(others, l.at.Taken, l.at.Entries) {
		err := recipe.Retry(ctx, l.client, func(ctx context.Context) error { return l.client.Create(ctx, dir, []byte{}) })
		if err != nil && !errors.Is(err, coord.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// entry is an item's node as it was read.
type entry struct {
	name string
	data []byte
	stat coord.Stat

	acknowledged string // of a letter that is to be removed: the node that says so, or ""

	with []entry // to be claimed along with it
}

func (l nodes) get(ctx context.Context, name string) (entry, error) {
	data, stat, err := l.client.Get(ctx, l.entry(name))
	if data == nil {
		data = []byte{} // so it is also put again: Kazoo cannot read a node without data
	}
	return entry{name: name, data: data, stat: stat}, err
}

// dir is a directory as it was listed.
type dir struct {
	names   []string
	version int64 // the change that made the list what it was; 0: not listed
}

// children lists one of the queue's directories, which it makes if need be.
func (l nodes) children(ctx context.Context, v *coord.View, path string) (dir, error) {
	for {
		names, stat, err := v.Children(path)
		if !errors.Is(err, coord.ErrNoNode) {
			return dir{names, stat.Pzxid}, err
		}
		if err := l.ensure(ctx); err != nil {
			return dir{}, err
		}
	}
}

// list lists the entries and the claims, without a watch.
func (l nodes) list(ctx context.Context) (entries, claims []string, err error) {
	err = concurrently(
		func() (err error) { entries, err = l.client.Children(ctx, l.at.Entries); return err },
		func() (err error) { claims, err = l.client.Children(ctx, l.at.Taken); return err },
	)
	return entries, claims, err
}

// free lists the items that no consumer has.
func (l nodes) free(ctx context.Context) ([]string, error) {
	entries, claims, err := l.list(ctx)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil // never used
	}
	return unclaimed(entries, claims), err
}

// unclaimed returns the entries without a claim in order: by priority, then by
// age.
func unclaimed(entries, claims []string) []string {
	claimed := make(map[string]bool, len(claims))
	for _, name := range claims {
		claimed[name] = true
	}
	free := make([]string, 0, len(entries))
	for _, name := range entries {
		if isEntry(name) && !claimed[name] {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	return free
}

// atATime is how many requests are under way at the same time, at most.
const atATime = 128

// concurrently calls the functions, at most atATime of them at the same time.
func concurrently(fs ...func() error) error {
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

// An entry's name is Kazoo's: entry-PPP-NNNNNNNNNN, the priority and the
// server's sequence number. The names' order is the items'.
const (
	prefix     = "entry-"
	dash       = len("entry-000")
	nameLength = len("entry-000-0000000000")
)

// sequenceLimit is where items are refused: before the server's counter sticks,
// or turns negative and leaves the shape of the names.
const sequenceLimit = 1<<31 - 1<<16

func isEntry(name string) bool {
	return len(name) == nameLength && name[:len(prefix)] == prefix && name[dash] == '-' &&
		isNumber(name[len(prefix):dash]) && isNumber(name[dash+1:])
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

func priority(name string) int {
	p, _ := strconv.Atoi(name[len(prefix):dash])
	return p
}

func sequence(name string) int {
	n, _ := strconv.Atoi(name[dash+1:])
	return n
}

// reader reads a node, by [coord.Client.Get] for instance.
type reader = func(ctx context.Context, path string) ([]byte, coord.Stat, error)

// stat is a reader that leaves the data out.
func (l nodes) stat(ctx context.Context, path string) ([]byte, coord.Stat, error) {
	stat, there, err := l.client.Exists(ctx, path)
	if err == nil && !there {
		err = coord.ErrNoNode
	}
	return nil, stat, err
}

func anyName(string) bool { return true }

// readAll reads the nodes in a directory, which may be missing, in order.
func (l nodes) readAll(ctx context.Context, dir string, is func(name string) bool, read reader) ([]entry, error) {
	names, err := l.client.Children(ctx, dir)
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
func (l nodes) readEach(ctx context.Context, dir string, names []string, read reader) ([]entry, error) {
	all, reads := make([]entry, len(names)), []func() error{}
	for i, name := range names {
		reads = append(reads, func() error {
			data, stat, err := read(ctx, dir+"/"+name)
			if err == nil {
				all[i] = entry{name: name, data: data, stat: stat}
			} else if errors.Is(err, coord.ErrNoNode) {
				err = nil
			}
			return err
		})
	}
	err := concurrently(reads...)
	return slices.DeleteFunc(all, func(e entry) bool { return e.name == "" }), err
}
