package vitess

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/zk2topo"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
)

// factory makes topology servers whose files, directories and watches are those
// of Vitess's own implementation, and whose locks and elections are ours. They
// have the same places.
type factory struct{ zk2topo.Factory }

func (f factory) Create(cell, servers, root string) (topo.Conn, error) {
	files, err := f.Factory.Create(cell, servers, root)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	voting, _, _ := strings.Cut(servers, "|") // observers come behind it
	client, err := coord.Open(ctx, voting)
	if err != nil {
		files.Close()
		return nil, err
	}
	return &conn{Conn: files, client: client, root: root}, nil
}

type conn struct {
	topo.Conn
	client *coord.Client
	root   string
}

func (c *conn) Close() {
	_ = c.client.Close(context.Background())
	c.Conn.Close()
}

type acquire = func(*lock.Mutex, context.Context) (*coord.Hold, error)

func (c *conn) Lock(ctx context.Context, dir, contents string) (topo.LockDescriptor, error) {
	return c.lockDir(ctx, dir, contents, (*lock.Mutex).Acquire)
}

func (c *conn) LockWithTTL(ctx context.Context, dir, contents string, ttl time.Duration) (topo.LockDescriptor, error) {
	return c.lockDir(ctx, dir, contents, (*lock.Mutex).Acquire, lock.MaxHold(ttl, 0))
}

func (c *conn) TryLock(ctx context.Context, dir, contents string) (topo.LockDescriptor, error) {
	return c.lockDir(ctx, dir, contents, (*lock.Mutex).TryAcquire)
}

func (c *conn) LockName(ctx context.Context, dir, contents string) (topo.LockDescriptor, error) {
	return c.lock(ctx, dir, contents, (*lock.Mutex).Acquire, lock.MaxHold(24*time.Hour, 0))
}

// lockDir locks a directory that exists.
func (c *conn) lockDir(
	ctx context.Context, dir, contents string, f acquire, opts ...lock.Option,
) (topo.LockDescriptor, error) {
	if _, err := c.ListDir(ctx, dir, false); err != nil {
		return nil, err
	}
	return c.lock(ctx, dir, contents, f, opts...)
}

func (c *conn) lock(
	ctx context.Context, dir, contents string, f acquire, opts ...lock.Option,
) (topo.LockDescriptor, error) {
	m, err := lock.New(c.client, path.Join(c.root, dir, "locks"), append(opts, lock.Data([]byte(contents)))...)
	if err != nil {
		return nil, err
	}
	hold, err := f(m, ctx)
	if err != nil {
		return nil, topoError(err, m.Path())
	}
	return held{hold}, nil
}

type held struct{ hold *coord.Hold }

func (h held) Check(context.Context) error { return h.hold.Err() }

// Unlock fails for a lock that is lost or unlocked already.
func (h held) Unlock(ctx context.Context) error {
	if err := h.hold.Err(); err != nil {
		return err
	}
	return h.hold.Release(ctx)
}

func topoError(err error, node string) error {
	switch {
	case errors.Is(err, coord.ErrBusy):
		return topo.NewError(topo.NodeExists, node)
	case errors.Is(err, context.DeadlineExceeded):
		return topo.NewError(topo.Timeout, node)
	case errors.Is(err, context.Canceled):
		return topo.NewError(topo.Interrupted, node)
	}
	return err
}
