package lock

import (
	"context"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// Mutex is a lock on a path. It is configuration, not state: what is held is
// the [coord.Hold] that Acquire returns. It is safe for concurrent use, and two
// goroutines of one process exclude each other as two processes do.
type Mutex struct {
	client    *coord.Client
	spec      coord.Spec
	reentrant bool
}

// Option sets something about a [Mutex].
type Option func(*Mutex)

// Reentrant lets a goroutine acquire again what it holds: given a context made
// by [coord.Hold.Context], Acquire returns at once another handle of the same
// hold, without a request. The node is deleted when every handle is released.
// The context carries the right: whoever gets it may enter, so do not pass it
// to two goroutines that must exclude each other.
func Reentrant() Option { return func(m *Mutex) { m.reentrant = true } }

// New returns the mutex at path, a directory that is made when it is needed.
// It does no I/O. A path that cannot be right fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Mutex, error) {
	switch err := coord.CheckPath(path); {
	case err != nil:
		return nil, err
	case client == nil:
		return nil, fmt.Errorf("%w: the client of the lock at %s is nil", coord.ErrInvalid, path)
	case slices.ContainsFunc(opts, func(o Option) bool { return o == nil }):
		return nil, fmt.Errorf("%w: an option of the lock at %s is nil", coord.ErrInvalid, path)
	}
	m := &Mutex{client: client, spec: coord.Spec{Line: Line(path), Kind: coord.Lock, Exclusive: true}}
	for _, set := range opts {
		set(m)
	}
	return m, nil
}

// Line is the line of a mutex at path. Nodes of a read/write lock in the same
// directory take part: a mutex stands in it like a writer.
func Line(path string) coord.Line {
	return coord.Line{Dir: path, Kinds: []coord.Kind{coord.Lock, coord.Read, coord.Write}}
}

// rule: the first in line holds. The others wait for the one before them; they
// also watch the one before that, and look when it goes, so that they know,
// when their turn comes, that nobody else is left.
func rule(_ []coord.Contender, self int) (wait []int, granted bool) {
	switch self {
	case 0:
		return nil, true
	case 1:
		return []int{0}, false
	}
	return []int{self - 1, self - 2}, false
}

// Acquire waits for the lock until ctx ends. ctx bounds the waiting, not the
// hold. When it returns an error, nothing is left behind.
func (m *Mutex) Acquire(ctx context.Context) (*coord.Hold, error) {
	if h, decided, err := m.client.Inside(ctx, m.spec, m.reentrant); decided {
		return h, err
	}
	return m.client.Acquire(ctx, m.spec, rule)
}

// TryAcquire takes the lock if it is free and fails with [coord.ErrBusy] if it
// is not. A busy lock costs one read and no write.
func (m *Mutex) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	if h, decided, err := m.client.Inside(ctx, m.spec, m.reentrant); decided {
		return h, err
	}
	return m.client.TryAcquire(ctx, m.spec, rule)
}

// Do runs f while holding the lock. f's context ends when the hold does; its
// cause tells why. Do returns f's error, joined with that of the release, and
// with the loss, if the hold was lost before f returned: then what f did may
// not have been alone.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	return coord.Do(ctx, h, func(ctx context.Context) error { return f(ctx, h) })
}

// Contenders lists who holds and who waits, in order: one listing and one read
// for each.
func (m *Mutex) Contenders(ctx context.Context) ([]coord.ContenderInfo, error) {
	return m.client.Contenders(ctx, m.spec.Line)
}
