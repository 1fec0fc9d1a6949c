package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// census counts the [Queue] objects that consume from a queue. Each has a node
// from the moment it has to share the items or to wait for them. The
// dispatcher's gate guards it.
type census struct {
	layout
	id  string // of this object; its nodes' names begin with it
	own *coord.Hold
}

// share is the rank of an object among the consumers, and their number.
type share struct{ rank, of int }

// countConsumers finds out the own share of the items; the gate is held.
// Without a change since the last time it costs nothing.
func (d *dispatcher) countConsumers(ctx context.Context) error {
	share, err := d.census.count(ctx)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.share = share
	}
	return err
}

func (c *census) count(ctx context.Context) (share, error) {
	for {
		if err := c.join(ctx); err != nil {
			return share{}, err
		}
		var names []string
		err := c.client.Wait(ctx, func(v *coord.View) (done bool, err error) {
			names, _, err = v.Children(c.at.Consumers)
			return true, err
		})
		if !errors.Is(err, coord.ErrNoNode) {
			return c.find(names), err
		}
		c.own.Abandon() // another client deleted the own node, and the directory with it
	}
}

// join makes the own node, unless there is one.
func (c *census) join(ctx context.Context) error {
	for c.own == nil || c.own.Err() != nil {
		own, err := c.client.AcquireName(ctx, coord.NameSpec{Path: c.at.Consumers + "/" + c.id + "-" + rand.Text(), Recipe: c.at.Path})
		switch {
		case err == nil:
			c.own = own
		case !errors.Is(err, coord.ErrNodeExists): // as for one that an ended session has, not yet at the servers
			return err
		}
	}
	return nil
}

// find finds the own node among all. A node of a former session, which the
// servers have not ended yet, is no other consumer; and a server that lags
// behind does not show the own one.
func (c *census) find(names []string) share {
	own := c.own.Node()[len(c.at.Consumers)+1:]
	names = slices.DeleteFunc(names, func(name string) bool { return name != own && strings.HasPrefix(name, c.id) })
	slices.Sort(names)
	rank, found := slices.BinarySearch(names, own)
	if !found {
		return share{rank, len(names) + 1}
	}
	return share{rank, len(names)}
}
