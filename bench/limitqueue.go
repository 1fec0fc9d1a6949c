package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// openAcknowledged is a bare queue with claims and acknowledgements, so many
// items together: what at least one delivery of each item costs in Kazoo's
// layout. The next items are read along with a claim.
func openAcknowledged(size int) open {
	return func(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
		conn, err := connect(ctx, addr, timeout)
		if err != nil {
			return nil, err
		}
		queue := func(path string) (put, receive, error) {
			c := &bareConsumer{conn: conn, path: path, size: size}
			put, receive := inBatches(size, c.put, c.receive)
			return put, receive, errors.Join(makeDir(conn, path+"/entries"), makeDir(conn, path+"/taken"))
		}
		return &session{queue: queue, close: conn.Close}, nil
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
		creates[i] = &zk.CreateRequest{Path: c.path + "/entries/entry-100-", Data: item, Flags: zk.FlagSequence, Acl: everyone}
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
			acks = append(acks, &zk.DeleteRequest{Path: claim, Version: 0}, &zk.DeleteRequest{Path: entry, Version: item.version + 1})
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

// list lists the items that nobody has, or waits until that can change.
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
