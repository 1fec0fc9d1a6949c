package cli

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// closeWithin bounds the farewell to the servers.
const closeWithin = 500 * time.Millisecond

// connection says which servers to use, and how.
type connection struct {
	ZK             string        `name:"zk" env:"ZK_SERVERS" placeholder:"HOST:PORT,…" help:"The ZooKeeper servers, with a chroot if wanted."`
	SessionTimeout time.Duration `placeholder:"10s" help:"After a crash, others wait so long. Demos use less."`
	Dialect        string        `enum:"curator,kazoo" default:"curator" help:"Whose node names to use: curator (Java) or kazoo (Python). All who share a path must use the same."`
	ConnectTimeout time.Duration `default:"10s" help:"How long to try to get a session."`
}

func (c *connection) sessionTimeout() time.Duration {
	if c.SessionTimeout == 0 {
		return coord.DefaultSessionTimeout
	}
	return c.SessionTimeout
}

func (c *connection) dialect() coord.Dialect {
	if c.Dialect == coord.Kazoo.String() {
		return coord.Kazoo
	}
	return coord.Curator
}

// open connects. It takes no longer than ConnectTimeout and ctx allow.
func (c *connection) open(ctx context.Context, more ...coord.Option) (*coord.Client, error) {
	if c.ZK == "" {
		return nil, usageError("no servers are named: use --zk or ZK_SERVERS, for example ZK_SERVERS=zk1:2181,zk2:2181\n" +
			"(for development, \"coorddemo server\" runs one on 127.0.0.1:2181)")
	}
	if c.ConnectTimeout <= 0 {
		return nil, usageError("--connect-timeout %v: it must be positive", c.ConnectTimeout)
	}
	connecting, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	opts := append([]coord.Option{
		coord.WithSessionTimeout(c.sessionTimeout()), coord.WithIdentity("coorddemo"), coord.WithDialect(c.dialect()),
	}, more...)
	client, err := coord.Open(connecting, c.ZK, opts...)
	switch {
	case err == nil:
		return client, nil
	case errors.Is(err, coord.ErrInvalid):
		return nil, &exitError{exitUsage, err}
	default:
		return nil, &exitError{exitUnavailable, err}
	}
}

// with runs f with a connection, for verbs that ask one thing: f's context ends after ConnectTimeout, too.
func (c *connection) with(f func(ctx context.Context, client *coord.Client) error) error {
	client, err := c.open(context.Background())
	if err != nil {
		return err
	}
	defer hangUp(client)
	ctx, cancel := context.WithTimeout(context.Background(), c.ConnectTimeout)
	defer cancel()
	return failure(f(ctx, client))
}

// failure gives an error its status, unless it has one.
func failure(err error) error {
	var known *exitError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{exitUnavailable, err}
	default:
		return orUsage(err, exitFailed)
	}
}

// hangUp ends the session, unless that takes too long: then the servers do it.
func hangUp(client *coord.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = client.Close(ctx)
}
