package recipe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Group is several holds as one: it ends when the first of them does. Like a
// [coord.Hold] it is safe for concurrent use, and has to be released.
type Group struct {
	holds   []*coord.Hold
	held    context.Context // ends with the first hold
	revoked func() <-chan struct{}
}

// NewGroup makes one of the holds, of which there must be at least one. Release
// the holds only by the group.
func NewGroup(first *coord.Hold, more ...*coord.Hold) *Group {
	g := &Group{holds: append([]*coord.Hold{first}, more...)}
	g.held = g.Context(context.Background())
	g.revoked = sync.OnceValue(g.awaitRequest)
	return g
}

// Holds returns the members, in the order given.
func (g *Group) Holds() []*coord.Hold { return slices.Clone(g.holds) }

// Done is closed when a member has ended, for any reason.
func (g *Group) Done() <-chan struct{} { return g.held.Done() }

// Err returns nil while every member can be trusted, and otherwise the error of
// one that cannot; see [coord.Hold.Err].
func (g *Group) Err() error {
	var released error
	for _, h := range g.holds {
		switch err := h.Err(); {
		case errors.Is(err, coord.ErrReleased):
			released = err
		case err != nil:
			return err
		}
	}
	return released
}

// Deadline returns the members' earliest deadline; see [coord.Hold.Deadline].
func (g *Group) Deadline() time.Time {
	first := g.holds[0].Deadline()
	for _, h := range g.holds[1:] {
		if d := h.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Context returns a context that ends when a member or parent does;
// context.Cause says which. It carries every member: see [coord.HeldIn].
func (g *Group) Context(parent context.Context) context.Context {
	for _, h := range g.holds {
		parent = h.Context(parent)
	}
	return parent
}

// Revoked is closed when a client has asked for a member; see
// [coord.Hold.Revoked].
func (g *Group) Revoked() <-chan struct{} { return g.revoked() }

func (g *Group) awaitRequest() <-chan struct{} {
	asked := make(chan struct{})
	tell := sync.OnceFunc(func() { close(asked) })
	for _, h := range g.holds {
		revoked := h.Revoked()
		go func() {
			select {
			case <-revoked:
				tell()
			case <-g.held.Done():
			}
		}()
	}
	return asked
}

// Release releases every member; see [coord.Hold.Release]. All are deleted
// together, in one round trip. The failures are reported in one error;
// [coord.Hold.Release] says what nil means.
func (g *Group) Release(ctx context.Context) error {
	failures := make([]error, len(g.holds))
	var releasing sync.WaitGroup
	for i, h := range g.holds {
		releasing.Go(func() { failures[i] = h.Release(ctx) })
	}
	releasing.Wait()
	return Joined(failures...)
}
