package hold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Set is several holds as one: it ends when the first of them does. Like a
// [coord.Hold] it is safe for concurrent use, and has to be released.
type Set struct {
	holds   []*coord.Hold
	held    context.Context // ends with the first hold
	revoked func() <-chan struct{}
}

// NewSet makes a set of holds, at least one. Release them only by the set.
func NewSet(first *coord.Hold, more ...*coord.Hold) *Set {
	s := &Set{holds: append([]*coord.Hold{first}, more...)}
	s.held = s.Context(context.Background())
	s.revoked = sync.OnceValue(s.awaitRequest)
	return s
}

// Holds returns the members, in the order given.
func (s *Set) Holds() []*coord.Hold { return slices.Clone(s.holds) }

// Done is closed when a member has ended, for any reason.
func (s *Set) Done() <-chan struct{} { return s.held.Done() }

// Err returns nil while every member can be trusted, and otherwise the error of
// one that cannot; see [coord.Hold.Err].
func (s *Set) Err() error {
	var released error
	for _, h := range s.holds {
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
func (s *Set) Deadline() time.Time {
	first := s.holds[0].Deadline()
	for _, h := range s.holds[1:] {
		if d := h.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Context returns a context that ends when a member or parent does;
// context.Cause says which. It carries every member: see [coord.HeldIn].
func (s *Set) Context(parent context.Context) context.Context {
	for _, h := range s.holds {
		parent = h.Context(parent)
	}
	return parent
}

// Revoked is closed when a client has asked for one of the holds; see
// [coord.Hold.Revoked].
func (s *Set) Revoked() <-chan struct{} { return s.revoked() }

func (s *Set) awaitRequest() <-chan struct{} {
	asked := make(chan struct{})
	tell := sync.OnceFunc(func() { close(asked) })
	for _, h := range s.holds {
		revoked := h.Revoked()
		go func() {
			select {
			case <-revoked:
				tell()
			case <-s.held.Done():
			}
		}()
	}
	return asked
}

// Release releases every member; see [coord.Hold.Release]. Their nodes are
// deleted together, in one round trip. The failures are reported in one error;
// [coord.Hold.Release] says what nil means.
func (s *Set) Release(ctx context.Context) error {
	failures := make([]error, len(s.holds))
	var releasing sync.WaitGroup
	for i, h := range s.holds {
		releasing.Go(func() { failures[i] = h.Release(ctx) })
	}
	releasing.Wait()
	return recipe.Joined(failures...)
}
