package lock

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Mutex is a lock on a path. It is configuration, not state: Acquire returns
// the state, a [coord.Hold]. A Mutex is safe for concurrent use, and two
// goroutines of one process exclude each other as two processes do.
type Mutex struct {
	client *coord.Client
	spec   coord.Spec
	local  *local // nil without [LocalQueue] and [Linger]
	bound  hold.Bound
	delay  time.Duration
}

// Option sets something about a [Mutex].
type Option func(*Mutex) error

// Reentrant lets a goroutine acquire again what it holds: given a context made
// by [coord.Hold.Context], Acquire immediately returns another handle of the
// same hold, without a request. The node is deleted when every handle is
// released. A goroutine with the context may enter, so do not pass it to two
// goroutines that must exclude each other.
func Reentrant() Option {
	return func(m *Mutex) error {
		m.spec.Reentrant = true
		return nil
	}
}

// New returns the mutex at path, a directory that is made when it is needed. It
// does no I/O. An invalid path fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Mutex, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	m := &Mutex{client: client, spec: coord.Spec{Line: inspect.LockLine(path), Kind: "lock", Exclusive: true}}
	if err := recipe.Configure(m, path, opts); err != nil {
		return nil, err
	}
	if err := m.checkDialect(); err != nil {
		return nil, &coord.OpError{Op: "new", Path: path, Err: err}
	}
	return m, nil
}

// Acquire waits for the lock until ctx ends. ctx bounds the waiting, not the
// hold. When it returns an error, nothing is left behind. With a context that
// carries a read hold of a read/write lock on the same path it fails with
// [coord.ErrInvalid].
func (m *Mutex) Acquire(ctx context.Context) (*coord.Hold, error) {
	acquire := m.acquireInLine
	if m.local != nil || m.delay > 0 {
		acquire = m.acquireOtherwise
	}
	h, err := acquire(ctx)
	return m.bounded(ctx, h, err)
}

func (m *Mutex) acquireInLine(ctx context.Context) (*coord.Hold, error) {
	return recipe.Acquire(ctx, m.client, &m.spec, coord.First)
}

// acquireOtherwise acquires by the local queue, or with a delay. It is apart
// for the sake of the many who wait in [Mutex.Acquire], and their stacks.
func (m *Mutex) acquireOtherwise(ctx context.Context) (*coord.Hold, error) {
	if m.local == nil || m.inside(ctx) {
		return m.inLine(ctx, false)
	}
	h, err := m.local.acquire(ctx)
	return h, recipe.Failure(m.client, "acquire", m.Path(), err)
}

// inside reports whether ctx carries a hold of the line, in which an acquire is
// not to wait.
func (m *Mutex) inside(ctx context.Context) bool {
	_, inside := coord.HeldIn(ctx, m.client, m.Path())
	return inside
}

// TryAcquire takes the lock if it is free and fails with [coord.ErrBusy] if it
// is not. A busy lock costs one read and no write. While no server can be
// reached, it waits for one until ctx ends.
func (m *Mutex) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	if m.local == nil || m.inside(ctx) {
		h, err := m.inLine(ctx, true)
		return m.bounded(ctx, h, err)
	}
	h, err := m.local.try(ctx)
	return m.bounded(ctx, h, recipe.Failure(m.client, "try", m.Path(), err))
}

// Contenders lists the holder and the waiters, in order: one listing and one
// read for each.
func (m *Mutex) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	return inspect.InLine(ctx, m.client, m.spec.Line)
}

// Client returns the client the mutex was made with.
func (m *Mutex) Client() *coord.Client { return m.client }

// Path returns the mutex's directory.
func (m *Mutex) Path() string { return m.spec.Line.Dir }
