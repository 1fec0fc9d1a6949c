package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// ErrNoBarrier: the node at the path is no barrier, and would not keep it shut.
// The message describes the node.
var ErrNoBarrier = errors.New("the node exists, but is no barrier")

// Barrier is a barrier at a path: closed while the node exists, open while it
// does not. It is configuration, not state, and safe for concurrent use.
type Barrier struct {
	client *coord.Client
	path   string
}

// New returns the barrier at path. It does no I/O. An invalid argument fails
// with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Barrier, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	return &Barrier{client, path}, nil
}

// Set closes the barrier; one that is closed stays so. When it has returned
// nil, every [Barrier.Wait] that begins afterwards waits, on any server. The
// node's data name the client that closed it, and missing parents are made. An
// existing node that belongs to a session, or has or once had children, is
// refused with [ErrNoBarrier]. Set repeats itself over lost connections and
// sessions until ctx ends.
func (b *Barrier) Set(ctx context.Context) error {
	for {
		err := recipe.Retry(ctx, b.client, func(ctx context.Context) error {
			return b.client.Create(ctx, b.path, []byte(b.client.Info().Identity))
		})
		if !errors.Is(err, coord.ErrNodeExists) {
			return recipe.Failure(b.client, "set", b.path, err)
		}
		stat, exists, err := b.client.Exists(ctx, b.path)
		if err != nil {
			return recipe.Failure(b.client, "set", b.path, err)
		}
		if !exists {
			continue // opened since
		}
		return recipe.Failure(b.client, "set", b.path, other(stat))
	}
}

// other returns why a node cannot be a barrier, or nil if it can. A container
// shows only by the children it has or had, and the servers delete it only if
// it had some: one that never had any stays, as any other node does.
func other(stat coord.Stat) error {
	switch {
	case stat.Owner != 0:
		return fmt.Errorf("%w: it goes with a session", ErrNoBarrier)
	case stat.Children > 0:
		return fmt.Errorf("%w: it has children (%d)", ErrNoBarrier, stat.Children)
	case stat.Cversion != 0:
		return fmt.Errorf("%w: it had children, so that the servers may be about to delete it", ErrNoBarrier)
	}
	return nil
}

// Closed reports whether the barrier is closed, as far as the server that is
// asked knows: for people to look at. A program that depends on it calls Wait.
// One request.
func (b *Barrier) Closed(ctx context.Context) (bool, error) {
	_, closed, err := b.client.Exists(ctx, b.path)
	return closed, recipe.Failure(b.client, "look at", b.path, err)
}

// SetBy returns who closed the barrier, and when by the server's clock: the
// [coord.Info.Identity] of a client of this library, or the address that
// Curator's DistributedBarrier writes. A node that does not say so, or that Set
// would refuse, fails with [ErrNoBarrier]. One request.
func (b *Barrier) SetBy(ctx context.Context) (by string, at time.Time, err error) {
	data, stat, err := b.client.Get(ctx, b.path)
	if err == nil {
		err = other(stat)
	}
	_, notAddress := netip.ParseAddr(string(data))
	if err == nil && notAddress != nil && (!inspect.NamesOwner(data) || bytes.ContainsRune(data, '\n')) {
		err = fmt.Errorf("%w: its data name no client", ErrNoBarrier)
	}
	return string(data), stat.Created, recipe.Failure(b.client, "read", b.path, err)
}

// Open opens the barrier; one that is open stays so. All waiters go on, and
// nothing is left at the path. It repeats itself over lost connections and
// sessions until ctx ends.
func (b *Barrier) Open(ctx context.Context) error {
	err := recipe.Retry(ctx, b.client, func(ctx context.Context) error {
		err := b.client.Delete(ctx, b.path, -1)
		if errors.Is(err, coord.ErrNoNode) {
			return nil
		}
		return err
	})
	return recipe.Failure(b.client, "open", b.path, err)
}

// Wait returns nil when the barrier has been open at some moment since the
// call, and ctx's error when ctx ends first; after a deadline it says who
// closed the barrier. It does not miss an opening while it is disconnected, not
// even when the barrier has been closed again by then. Only an opening that is
// over before the first answer is missed, as if the call had come after it. A
// node that Set would refuse, such as the path of a lock, fails with
// [ErrNoBarrier].
func (b *Barrier) Wait(ctx context.Context) error {
	closed, by := int64(0), "" // the node waited for, by its czxid, and who made it
	err := b.client.Synced().Wait(ctx, func(v *coord.View) (open bool, err error) {
		data, stat, err := v.Get(b.path)
		if errors.Is(err, coord.ErrNoNode) || err == nil && closed != 0 && closed != stat.Czxid {
			return true, nil // or was, and is closed again
		}
		if err == nil {
			closed, by, err = stat.Czxid, string(data), other(stat)
		}
		return false, err
	})
	err = recipe.InVain(ctx, b.client, err, func(context.Context) (string, error) {
		if closed == 0 {
			return "", nil // no server has answered
		}
		return "closed by " + strconv.Quote(by), nil
	})
	return recipe.Failure(b.client, "wait", b.path, err)
}
