package lock

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Acquirer is a lock that can take part in a [Multi]: a [*Mutex], or a side of
// a read/write lock.
type Acquirer interface {
	Client() *coord.Client
	Path() string
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

// Multi is several locks as one: all of them are held, or none. It is
// configuration, not state, and safe for concurrent use.
//
// It acquires its locks one after the other in the order of their paths, not in
// the order given. Programs that take several of a set of locks only by a Multi
// therefore never wait for each other in a circle. A program that holds one of
// the locks already, by other means, and then acquires a Multi that begins with
// a smaller path, breaks that order.
type Multi struct {
	locks []Acquirer // by path
}

// NewMulti makes one lock of several: mutexes and sides of read/write locks in
// any mix. It does no I/O. It fails with [coord.ErrInvalid] when there is no
// lock, when two stand in the same line, which is a path and a [Dialect] (the
// second would wait for the first), and when they are of different clients
// (they may have different chroots or servers, and then their paths have no
// common order).
func NewMulti(locks ...Acquirer) (*Multi, error) {
	if len(locks) == 0 {
		return nil, fmt.Errorf("%w: a multi-lock of no locks", coord.ErrInvalid)
	}
	for i, l := range locks {
		if l == nil || isNil(l) || l.Client() == nil {
			return nil, fmt.Errorf("%w: lock %d of the multi-lock is nil", coord.ErrInvalid, i)
		}
		if l.Client() != locks[0].Client() {
			return nil, fmt.Errorf(
				"%w: lock %d of the multi-lock (%s) is of another client than the first; make all of them with one",
				coord.ErrInvalid, i, l.Path())
		}
	}
	sorted := slices.SortedFunc(slices.Values(locks),
		func(a, b Acquirer) int { return slices.Compare(lineOf(a), lineOf(b)) })
	for i := 1; i < len(sorted); i++ {
		if slices.Equal(lineOf(sorted[i-1]), lineOf(sorted[i])) {
			return nil, fmt.Errorf("%w: the multi-lock has %s twice, and would wait for itself", coord.ErrInvalid,
				sorted[i].Path())
		}
	}
	return &Multi{sorted}, nil
}

// lineOf returns what distinguishes the lock's line from others.
func lineOf(l Acquirer) []string {
	if m, ok := l.(*Mutex); ok {
		return []string{m.Path(), string(m.spec.Line.Dialect)}
	}
	return []string{l.Path(), ""}
}

// isNil reports whether the lock is a nil pointer.
func isNil(l Acquirer) bool {
	v := reflect.ValueOf(l)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Acquire waits for all the locks until ctx ends. ctx bounds the waiting for
// all of them together, and not the holds. A request to give one of them up
// ([coord/inspect.Revoke]) that comes meanwhile shows in the group, once it has
// all. The [hold.Set] returned ends when the first of its holds does; its
// members are in the order of their paths.
//
// When an acquired lock is lost while Acquire waits for another, it releases
// all of them and begins again. When it returns an error, no lock is held.
// Failed releases are reported with the error, by go-multierror. The cost is
// the sum of the locks, one after the other.
func (m *Multi) Acquire(ctx context.Context) (*hold.Set, error) {
	for {
		g, lost, err := m.all(ctx, Acquirer.Acquire)
		switch {
		case !lost:
			return g, err
		case ctx.Err() != nil:
			return g, recipe.Ended(ctx, err)
		}
		ctx = recipe.Patient(ctx)
	}
}

// TryAcquire takes all the locks if all are free, and fails with
// [coord.ErrBusy] if one is not: the error names it.
func (m *Multi) TryAcquire(ctx context.Context) (*hold.Set, error) {
	g, _, err := m.all(ctx, Acquirer.TryAcquire)
	return g, err
}

// Do runs f while holding all the locks; see [hold.Do] for what it returns.
func (m *Multi) Do(ctx context.Context, f func(ctx context.Context, g *hold.Set) error) error {
	return hold.Do(ctx, m.Acquire, f)
}

// all acquires the locks in turn. It reports whether it failed because a lock
// that was acquired already was lost.
func (m *Multi) all(
	ctx context.Context, acquire func(Acquirer, context.Context) (*coord.Hold, error),
) (g *hold.Set, lost bool, err error) {
	var holds []*coord.Hold
	waiting := ctx // ends, too, when a hold is lost
	for _, l := range m.locks {
		h, err := acquire(l, waiting)
		if err != nil {
			lost = waiting.Err() != nil
			if lost && ctx.Err() == nil {
				err = recipe.Failure(l.Client(), "acquire", l.Path(), context.Cause(waiting))
			}
			return nil, lost, release(ctx, holds, err)
		}
		holds = append(holds, h)
		waiting = h.Context(recipe.Patient(waiting))
	}
	g = hold.NewSet(holds[0], holds[1:]...)
	if err := g.Err(); err != nil {
		return nil, true, release(ctx, holds, err)
	}
	return g, false, nil
}

// release releases the locks that were acquired before why happened, and adds
// its errors. When the caller's time is over, it does not wait.
func release(ctx context.Context, holds []*coord.Hold, why error) error {
	if len(holds) == 0 || ctx.Err() != nil {
		for _, h := range holds {
			h.Abandon()
		}
		return why
	}
	releasing, cancel := recipe.Grace(ctx)
	defer cancel()
	return recipe.Joined(why, hold.NewSet(holds[0], holds[1:]...).Release(releasing))
}
