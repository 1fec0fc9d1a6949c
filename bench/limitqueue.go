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

// openAcknowledged is a bare queue with claims and acknowledgements: what at
// least one delivery of each item costs in Kazoo's layout. The next item is
// read along with a claim.
func openAcknowledged(ctx context.Context, addr string, timeout time.Duration) (*session, error) {
	conn, err := connect(ctx, addr, timeout)
	if err != nil {
		return nil, err
	}
	queue := func(path string) (put, receive, error) {
		c := &bareConsumer{conn: conn, path: path}
		put := func(_ context.Context, item []byte) error {
			_, err := conn.Create(path+"/entries/entry-100-", item, zk.FlagSequence, everyone)
			return err
		}
		return put, c.receive, errors.Join(makeDir(conn, path+"/entries"), makeDir(conn, path+"/taken"))
	}
	return &session{queue: queue, close: conn.Close}, nil
}

// bareConsumer claims what it has listed. Consumers begin at different places,
// to meet seldom.
type bareConsumer struct {
	conn  *zk.Conn
	path  string
	names []string // listed, and not read yet
	ahead bareItem // read ahead, if it has a name
}

type bareItem struct {
	name    string
	data    []byte
	version int32
}

func (c *bareConsumer) receive(ctx context.Context) (call, error) {
	for {
		if c.ahead.name == "" {
			c.read()
		}
		item := c.ahead
		if item.name == "" {
			if err := c.list(ctx); err != nil {
				return nil, err
			}
			continue
		}
		var reading sync.WaitGroup
		reading.Go(c.read)
		entry, claim := c.path+"/entries/"+item.name, c.path+"/taken/"+item.name
		_, err := c.conn.Multi(
			&zk.CreateRequest{Path: claim, Flags: zk.FlagEphemeral, Acl: everyone},
			&zk.SetDataRequest{Path: entry, Data: item.data, Version: item.version},
		)
		reading.Wait()
		if err == nil {
			return func(context.Context) error {
				_, err := c.conn.Multi(
					&zk.DeleteRequest{Path: claim, Version: 0},
					&zk.DeleteRequest{Path: entry, Version: item.version + 1},
				)
				return err
			}, nil
		}
	}
}

// read reads the next item ahead.
func (c *bareConsumer) read() {
	for c.ahead = (bareItem{}); c.ahead.name == "" && len(c.names) > 0; c.names = c.names[1:] {
		data, stat, err := c.conn.Get(c.path + "/entries/" + c.names[0])
		if err == nil {
			c.ahead = bareItem{c.names[0], data, stat.Version}
		}
	}
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
	begin := rand.IntN(len(free))
	c.names = append(free[begin:], free[:begin]...)
	return nil
}
