package rwlock

import (
	"cmp"
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Lock is a read/write lock on a path. It is configuration, not state: its
// methods return the state, a [coord.Hold]. A Lock is safe for concurrent use,
// and two goroutines of one process exclude each other as two processes do.
type Lock struct {
	read, write Side
}

// Option sets something about a [Lock].
type Option func(*Lock) error

// Reentrant lets a goroutine acquire again what it holds: given a context made
// by [coord.Hold.Context], a read inside a read, a read inside a write, and a
// write inside a write immediately return another handle of the same hold,
// without a request. The node is deleted when every handle is released; a read
// inside a write excludes others for as long as it lasts, and carries the
// write's token. A goroutine with the context may enter, so do not pass it to
// two goroutines that must exclude each other.
func Reentrant() Option {
	return func(l *Lock) error {
		l.read.spec.Reentrant, l.write.spec.Reentrant = true, true
		return nil
	}
}

// MaxHold bounds how long either side is held through this [Lock]: after d the
// holder is asked to give it up, and after grace more it has lost it. See
// [hold.Bound.MaxHold].
func MaxHold(d, grace time.Duration) Option {
	return func(l *Lock) error { return cmp.Or(l.read.bound.MaxHold(d, grace), l.write.bound.MaxHold(d, grace)) }
}

// StopGrace bounds how long the function of [Lock.DoRead] or [Lock.DoWrite] may
// go on under the lock after its context has ended. See
// [hold.Bound.StopGrace].
func StopGrace(d time.Duration) Option {
	return func(l *Lock) error { return cmp.Or(l.read.bound.StopGrace(d), l.write.bound.StopGrace(d)) }
}

// New returns the lock at path, a directory that is made when it is needed. It
// does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Lock, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	line := inspect.LockLine(path)
	l := &Lock{
		read:  Side{client: client, spec: coord.Spec{Line: line, Kind: "read"}, rule: readRule},
		write: Side{client: client, spec: coord.Spec{Line: line, Kind: "write", Exclusive: true}, rule: writeRule},
	}
	if err := recipe.Configure(l, path, opts); err != nil {
		return nil, err
	}
	return l, nil
}

// readRule: a reader holds when no writer came before it. Else it waits for the
// nearest of them and for no other, so a writer's release wakes all the readers
// right behind it, together.
func readRule(ahead []coord.Contender) (wait []int, granted bool) {
	for i := len(ahead) - 1; i >= 0; i-- {
		if ahead[i].Kind != "read" {
			return []int{i}, false
		}
	}
	return nil, true
}

// writeRule: the first in line holds. The others wait for the one before them,
// of either kind. (A mutex watches two ahead to save a listing; here a
// departing writer may have left a reader in its place, so a listing must
// follow anyway.)
func writeRule(ahead []coord.Contender) (wait []int, granted bool) {
	if len(ahead) == 0 {
		return nil, true
	}
	return []int{len(ahead) - 1}, false
}

// ReadSide returns the shared side of the lock, for where any kind of lock
// will do, such as a multi-lock.
func (l *Lock) ReadSide() *Side { return &l.read }

// WriteSide returns the exclusive side of the lock.
func (l *Lock) WriteSide() *Side { return &l.write }

// AcquireRead waits for a shared hold until ctx ends: until every writer and
// mutex that came earlier has gone. The hold has no token.
func (l *Lock) AcquireRead(ctx context.Context) (*coord.Hold, error) { return l.read.Acquire(ctx) }

// AcquireWrite waits for the exclusive hold until ctx ends: until all that came
// earlier have gone. With a context that carries a read hold of the lock it
// fails with [coord.ErrInvalid].
func (l *Lock) AcquireWrite(ctx context.Context) (*coord.Hold, error) { return l.write.Acquire(ctx) }

// TryAcquireRead takes a shared hold if no writer holds or waits, and fails
// with [coord.ErrBusy] otherwise, which costs one read and no write. While no
// server can be reached, it waits for one until ctx ends.
func (l *Lock) TryAcquireRead(ctx context.Context) (*coord.Hold, error) {
	return l.read.TryAcquire(ctx)
}

// TryAcquireWrite takes the exclusive hold if no other claim holds or waits,
// and fails with [coord.ErrBusy] otherwise, which costs one read and no write.
func (l *Lock) TryAcquireWrite(ctx context.Context) (*coord.Hold, error) {
	return l.write.TryAcquire(ctx)
}

// DoRead runs f while holding the lock together with other readers; see
// [hold.Do] for what it returns.
func (l *Lock) DoRead(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return l.read.Do(ctx, f)
}

// DoWrite runs f while holding the lock alone; see [hold.Do] for what it
// returns.
func (l *Lock) DoWrite(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return l.write.Do(ctx, f)
}

// Contenders lists holders and waiters, in order: one listing and one read for
// each.
func (l *Lock) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	return inspect.Contenders(ctx, l.read.client, l.read.spec.Line.Dir, l.read.spec.Line.Kinds...)
}

// Side is one side of a [Lock], with the methods of any lock: it can take
// part in a multi-lock. It is safe for concurrent use.
type Side struct {
	client *coord.Client
	spec   coord.Spec
	rule   coord.Rule
	bound  hold.Bound
}

// Client returns the client the lock was made with.
func (s *Side) Client() *coord.Client { return s.client }

// Path returns the lock's directory.
func (s *Side) Path() string { return s.spec.Line.Dir }

// Acquire waits for the side's hold until ctx ends. ctx bounds the waiting, not
// the hold. When it returns an error, nothing is left behind. See
// [Lock.AcquireRead] and [Lock.AcquireWrite].
func (s *Side) Acquire(ctx context.Context) (*coord.Hold, error) {
	return s.bounded(ctx)(recipe.Acquire(ctx, s.client, &s.spec, s.rule))
}

// TryAcquire takes the side's hold if it is free and fails with [coord.ErrBusy]
// if it is not.
func (s *Side) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return s.bounded(ctx)(recipe.TryAcquire(ctx, s.client, &s.spec, s.rule))
}

// bounded has a hold end in time.
func (s *Side) bounded(ctx context.Context) func(h *coord.Hold, err error) (*coord.Hold, error) {
	return func(h *coord.Hold, err error) (*coord.Hold, error) {
		if err == nil {
			s.bound.Granted(ctx, s.client, h)
		}
		return h, err
	}
}

// Do acquires, runs f, and releases; see [hold.Do] for what it returns.
func (s *Side) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return hold.Do(ctx, s.Acquire, f)
}
