package dispatch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// consumerCount counts the clients that consume from a queue. Each has a node
// from the moment it has to share the items or to wait for them, until it has
// not received anything for the session timeout. All queue objects of a client
// share it.
type consumerCount struct {
	at      store.Nodes
	options string
	id      string        // of this client; its nodes' names begin with it
	gate    chan struct{} // held to count; a channel: waiting for it ends with a context
	own     *coord.Hold   // guarded by the gate
	here    int           // objects that receive; guarded, as is idle, by consumerCounts
	idle    *time.Timer   // while there is none
}

// consumerCounts are those of this process that have receivers, or had them a
// short time ago.
var consumerCounts = struct {
	sync.Mutex
	of map[site]*consumerCount
}{of: map[site]*consumerCount{}}

// site is a queue as one client sees it.
type site struct {
	client *coord.Client
	path   string
}

// enter returns the count of the consumers of a queue for an object that
// receives.
func enter(l store.Nodes, options string) *consumerCount {
	consumerCounts.Lock()
	defer consumerCounts.Unlock()
	at := site{l.Client, l.Path}
	c := consumerCounts.of[at]
	if c == nil {
		c = &consumerCount{at: l, options: options, id: rand.Text(), gate: make(chan struct{}, 1)}
		consumerCounts.of[at] = c
	}
	c.here++
	if c.idle != nil {
		c.idle.Stop()
	}
	return c
}

// leave notes that an object does not receive any more.
func (c *consumerCount) leave() {
	consumerCounts.Lock()
	defer consumerCounts.Unlock()
	c.here--
	if c.here == 0 {
		c.idle = time.AfterFunc(c.at.Client.Info().SessionTimeout, c.forget)
	}
}

// forget gives up our node if nobody has come meanwhile.
func (c *consumerCount) forget() {
	consumerCounts.Lock()
	defer consumerCounts.Unlock()
	if at := (site{c.at.Client, c.at.Path}); c.here == 0 && consumerCounts.of[at] == c {
		delete(consumerCounts.of, at)
		if c.own != nil {
			c.own.Abandon()
		}
	}
}

// Dismiss deletes this client's node among the consumers of a queue, unless
// something receives here.
func Dismiss(ctx context.Context, l store.Nodes) {
	consumerCounts.Lock()
	at := site{l.Client, l.Path}
	c := consumerCounts.of[at]
	idle := c != nil && c.here == 0
	if idle {
		delete(consumerCounts.of, at)
		c.idle.Stop()
	}
	consumerCounts.Unlock()
	if idle && c.own != nil {
		_ = c.own.Release(ctx) // others count a node that is left as a consumer
	}
}

// isAlone reports whether no other object of this client receives.
func (c *consumerCount) isAlone() bool {
	consumerCounts.Lock()
	defer consumerCounts.Unlock()
	return c.here == 1
}

// slice is the rank of a client among the consumers, and their number.
type slice struct{ rank, of int }

// countConsumers finds out our share of the items. Without a change since
// the last time it costs nothing.
func (d *Dispatcher) countConsumers(ctx context.Context) error {
	share, err := d.consumers.count(ctx)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.share = share
	}
	return err
}

func (c *consumerCount) count(ctx context.Context) (slice, error) {
	select {
	case c.gate <- struct{}{}:
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return slice{}, recipe.Ended(ctx)
	}
	for {
		if err := c.join(ctx); err != nil {
			return slice{}, err
		}
		var names []string
		err := c.at.Client.Wait(ctx, func(v *coord.View) (done bool, err error) {
			names, _, err = v.Children(c.at.Consumers)
			return true, err
		})
		if !errors.Is(err, coord.ErrNoNode) {
			c.compare(names)
			return c.find(names), err
		}
		c.own.Abandon() // another client deleted our node, and the directory with it
	}
}

// join makes our node, unless there is one.
func (c *consumerCount) join(ctx context.Context) error {
	for c.own == nil || c.own.Err() != nil {
		own, err := recipe.AcquireName(ctx, c.at.Client,
			coord.NameSpec{
				Path: c.at.Consumers + "/" + c.id + "-" + rand.Text() + layout.ConsumerOptions + c.options, Recipe: c.at.Path,
			})
		switch {
		case err == nil:
			c.own = own
		case !errors.Is(err, coord.ErrNodeExists): // as by a session that has ended, but not yet at the servers
			return err
		}
	}
	return nil
}

// find finds our node among all. A node of a former session, which the
// servers have not ended yet, is no other consumer; and a server that lags
// behind does not show ours.
func (c *consumerCount) find(names []string) slice {
	own := c.own.Node()[len(c.at.Consumers)+1:]
	names = slices.DeleteFunc(names, func(name string) bool { return name != own && strings.HasPrefix(name, c.id) })
	slices.Sort(names)
	rank, found := slices.BinarySearch(names, own)
	if !found {
		return slice{rank, len(names) + 1}
	}
	return slice{rank, len(names)}
}

// options says what a consumer does with items that were delivered in vain. It
// is part of its node's name.
func (d *Dispatcher) options() string {
	dead := "never-dead"
	if d.limit > 0 {
		dead = fmt.Sprintf("dead-after-%d", d.limit)
	}
	return fmt.Sprintf("%s,backoff-%v", dead, d.backoff)
}

// compare reports consumers with other options, once for each of these.
func (c *consumerCount) compare(names []string) {
	for _, name := range names {
		if other := layout.OptionsOf(name); other != "" && other != c.options {
			recipe.ReportOnce(c.at.Client, slog.LevelWarn, event.Event{Kind: event.Differs, Path: c.at.Path, Err: fmt.Errorf(
				"another consumer of this queue has other options (%s) than this one (%s): each delivery follows the options of the consumer that gets it", other, c.options)})
		}
	}
}
