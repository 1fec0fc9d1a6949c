package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// The limits do what the protocol asks for and nothing else: no node is looked
// for after a lost reply, no name is unique, no crash is survived.

// bare is a plain connection.
type bare struct{ conn *zk.Conn }

// useBare is create and delete for a lock, the textbook's double barrier, and a
// queue whose consumers take what they read ahead.
func useBare(conn *zk.Conn) session {
	b := bare{conn}
	return session{lock: b.lock, barrier: b.barrier, queue: b.queue}
}

func (b bare) lock(path string) (acquire, error) {
	return func(context.Context) (call, error) { return b.create(path) }, makeDir(b.conn, path)
}

func (b bare) create(path string) (release call, err error) {
	node, err := b.conn.Create(path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, everyone)
	return func(context.Context) error { return b.conn.Delete(node, -1) }, err
}

// usePipelined sends the create and the listing that every lock needs together.
func usePipelined(conn *zk.Conn) session {
	return session{lock: func(path string) (acquire, error) {
		return func(context.Context) (release call, err error) {
			var list sync.WaitGroup
			var listErr error
			list.Go(func() { _, _, listErr = conn.Children(path) })
			release, err = bare{conn}.create(path)
			list.Wait()
			return release, errors.Join(err, listErr)
		}, makeDir(conn, path)
	}}
}

// barrier is the double barrier of ZooKeeper's own recipes, with a node "ready"
// that the last member to come makes and the last to leave deletes.
func (b bare) barrier(path string, n int) (enter, leave call, err error) {
	members, ready := path+"/members", path+"/ready"
	own := ""
	enter = func(context.Context) error {
		_, _, opened, err := b.conn.ExistsW(ready)
		if err != nil {
			return err
		}
		if own, err = b.conn.Create(members+"/m-", nil, zk.FlagEphemeral|zk.FlagSequence, everyone); err != nil {
			return err
		}
		names, _, err := b.conn.Children(members)
		if err != nil {
			return err
		}
		if len(names) == n {
			if _, err := b.conn.Create(ready, nil, 0, everyone); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
		return (<-opened).Err
	}
	leave = func(context.Context) error {
		_, _, closed, err := b.conn.ExistsW(ready)
		if err != nil {
			return err
		}
		if err := b.conn.Delete(own, -1); err != nil {
			return err
		}
		names, _, err := b.conn.Children(members)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			if err := b.conn.Delete(ready, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		return (<-closed).Err
	}
	return enter, leave, makeDir(b.conn, members)
}

// readAhead is how many items a bare consumer takes at a time.
const readAhead = 16

func (b bare) queue(path string) (put, receive, error) {
	taken := make(chan struct{}, readAhead)
	put := func(_ context.Context, item []byte) error {
		_, err := b.conn.Create(path+"/item-", item, zk.FlagSequence, everyone)
		return err
	}
	receive := func(ctx context.Context) (call, error) {
		for len(taken) == 0 {
			if err := b.takeSome(ctx, path, taken); err != nil {
				return nil, err
			}
		}
		<-taken
		return func(context.Context) error { return nil }, nil
	}
	return put, receive, makeDir(b.conn, path)
}

// takeSome lists, or waits until something is there, and takes several items in
// one transaction. Consumers begin at different places, to meet seldom.
func (b bare) takeSome(ctx context.Context, path string, taken chan<- struct{}) error {
	names, _, changed, err := b.conn.ChildrenW(path)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	begin := rand.IntN(len(names))
	var all sync.WaitGroup
	for i := range min(readAhead, len(names)) {
		node := path + "/" + names[(begin+i)%len(names)]
		all.Go(func() {
			if _, _, err := b.conn.Get(node); err == nil && b.conn.Delete(node, -1) == nil {
				taken <- struct{}{}
			}
		})
	}
	all.Wait()
	return nil
}

// useAcknowledged is a bare queue with claims and acknowledgements, so many
// items together: what at least one delivery of each item costs in Kazoo's
// layout. The next items are read along with a claim.
func useAcknowledged(size int) func(*zk.Conn) session {
	return func(conn *zk.Conn) session {
		return session{queue: func(path string) (put, receive, error) {
			c := &bareConsumer{conn: conn, path: path, size: size}
			put, receive := inBatches(size, c.put, c.receive)
			return put, receive, errors.Join(makeDir(conn, path+"/entries"), makeDir(conn, path+"/taken"))
		}}
	}
}

// bareConsumer claims what it has listed. Consumers begin at different places,
// to meet seldom.
type bareConsumer struct {
	conn  *zk.Conn
	path  string
	size  int        // of a batch
	names []string   // listed, and not read yet
	ahead []bareItem // read ahead
}

type bareItem struct {
	name    string
	data    []byte
	version int32
}

func (c *bareConsumer) put(_ context.Context, items [][]byte) error {
	creates := make([]any, len(items))
	for i, item := range items {
		creates[i] = &zk.CreateRequest{
			Path: c.path + "/entries/entry-100-", Data: item, Flags: zk.FlagSequence, Acl: everyone,
		}
	}
	_, err := c.conn.Multi(creates...)
	return err
}

func (c *bareConsumer) receive(ctx context.Context) (n int, ack call, err error) {
	for {
		if len(c.ahead) == 0 {
			c.ahead = c.read()
		}
		if len(c.ahead) == 0 {
			if err := c.list(ctx); err != nil {
				return 0, nil, err
			}
			continue
		}
		claims, acks := []any{}, []any{}
		for _, item := range c.ahead {
			entry, claim := c.path+"/entries/"+item.name, c.path+"/taken/"+item.name
			claims = append(claims, &zk.CreateRequest{Path: claim, Flags: zk.FlagEphemeral, Acl: everyone},
				&zk.SetDataRequest{Path: entry, Data: item.data, Version: item.version})
			acks = append(acks, &zk.DeleteRequest{Path: claim, Version: 0},
				&zk.DeleteRequest{Path: entry, Version: item.version + 1})
		}
		next := make(chan []bareItem, 1)
		go func() { next <- c.read() }()
		_, err := c.conn.Multi(claims...)
		n, c.ahead = len(c.ahead), <-next
		if err == nil {
			return n, func(context.Context) error {
				_, err := c.conn.Multi(acks...)
				return err
			}, nil
		}
	}
}

// read reads the next items, all together.
func (c *bareConsumer) read() []bareItem {
	items := make([]bareItem, min(c.size, len(c.names)))
	var reading sync.WaitGroup
	for i := range items {
		name := c.names[i]
		reading.Go(func() {
			if data, stat, err := c.conn.Get(c.path + "/entries/" + name); err == nil {
				items[i] = bareItem{name, data, stat.Version}
			}
		})
	}
	reading.Wait()
	c.names = c.names[len(items):]
	return slices.DeleteFunc(items, func(item bareItem) bool { return item.name == "" })
}

// list lists the items that no consumer has, or waits until that can change.
func (c *bareConsumer) list(ctx context.Context) error {
	entries, _, changed, err := c.conn.ChildrenW(c.path + "/entries")
	if err != nil {
		return err
	}
	taken, _, err := c.conn.Children(c.path + "/taken")
	if err != nil {
		return err
	}
	free := slices.DeleteFunc(entries, func(name string) bool { return slices.Contains(taken, name) })
	if len(free) == 0 {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	slices.Sort(free)
	begin := rand.IntN(1+len(free)/c.size) * c.size % len(free)
	c.names = append(free[begin:], free[:begin]...)
	return nil
}
