package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
)

// layout is where a queue has its nodes.
type layout struct {
	client *coord.Client
	path   string
}

func (l layout) entries() string          { return l.path + "/entries" }
func (l layout) taken() string            { return l.path + "/taken" }
func (l layout) consumers() string        { return l.path + "/consumers" }
func (l layout) entry(name string) string { return l.entries() + "/" + name }
func (l layout) claim(name string) string { return l.taken() + "/" + name }

// waiting is the line of the idle consumers. Dialects do not mix in a line, but
// they may in a queue.
func (l layout) waiting() string {
	if l.client.Dialect() == coord.Kazoo {
		return l.path + "/waiting-kazoo"
	}
	return l.path + "/waiting"
}

// ensure makes the queue's directories, and others, which are persistent, as
// Kazoo makes them: an empty queue stays.
func (l layout) ensure(ctx context.Context, others ...string) error {
	for _, dir := range append(others, l.entries(), l.taken()) {
		err := l.client.Retry(ctx, func(ctx context.Context) error { return l.client.Create(ctx, dir, []byte{}) })
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

	with    []entry // to be claimed along with it
	claimed []*Item // ahead of their receiver, if these take its place
}

func (l layout) get(ctx context.Context, name string) (entry, error) {
	data, stat, err := l.client.Get(ctx, l.entry(name))
	return entry{name: name, data: data, stat: stat}, err
}

// dir is a directory as it was listed.
type dir struct {
	names   []string
	version int64 // the change that made the list what it was; 0: not listed
}

// children lists one of the queue's directories, which it makes if need be.
func (l layout) children(ctx context.Context, v *coord.View, path string) (dir, error) {
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

// free lists the items that no consumer has, without a watch.
func (l layout) free(ctx context.Context) ([]string, error) {
	var entries, claims []string
	err := together(
		func() (err error) { entries, err = l.client.Children(ctx, l.entries()); return err },
		func() (err error) { claims, err = l.client.Children(ctx, l.taken()); return err },
	)
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

// together calls the functions at the same time.
func together(fs ...func() error) error {
	errs := make([]error, len(fs))
	var calls sync.WaitGroup
	for i, f := range fs {
		calls.Go(func() { errs[i] = f() })
	}
	calls.Wait()
	return errors.Join(errs...)
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
