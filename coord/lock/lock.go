package lock

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Mutex is a lock on a path. It is configuration, not state: what is held is
// the [coord.Hold] that Acquire returns. It is safe for concurrent use, and two
// goroutines of one process exclude each other as two processes do.
type Mutex struct {
	client *coord.Client
	spec   coord.Spec
	local  *local // nil without [LocalQueue] and [Linger]
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
	if err := coord.Check(client, path); err != nil {
		return nil, err
	}
	m := &Mutex{client: client, spec: coord.Spec{Line: inspect.LockLine(path), Kind: "lock", Exclusive: true}}
	if err := coord.Configure(m, path, opts); err != nil {
		return nil, err
	}
	return m, nil
}

// Acquire waits for the lock until ctx ends. ctx bounds the waiting, not the
// hold. When it returns an error, nothing is left behind. With a context that
// carries a read hold of a read/write lock on the same path it fails with
// [coord.ErrInvalid].
func (m *Mutex) Acquire(ctx context.Context) (*coord.Hold, error) {
	if m.local == nil || m.inside(ctx) {
		return m.client.Acquire(ctx, m.spec, coord.First)
	}
	h, err := m.local.acquire(ctx)
	return h, m.client.Failure("acquire", m.Path(), err)
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
		return m.client.TryAcquire(ctx, m.spec, coord.First)
	}
	h, err := m.local.try(ctx)
	return h, m.client.Failure("try", m.Path(), err)
}

// Do runs f while holding the lock; see [coord.Do] for what it returns. For a
// lock that is worth it only if it is free, there is coord.Do with TryAcquire.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return coord.Do(ctx, m.Acquire, f)
}

// Contenders lists the holder and the waiters, in order: one listing and one
// read for each.
func (m *Mutex) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	return inspect.Contenders(ctx, m.client, m.spec.Line.Dir, m.spec.Line.Kinds...)
}
