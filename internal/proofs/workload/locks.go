package workload

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// tries reports whether a worker only tries this time.
func (w *Worker) tries() bool { return Chance(w.Rand, 0.15) && !w.isCalm() }

// Lock locks a mutex in one of the ways there are.
func Lock(w *Worker, c *coord.Client) bool {
	return lockBy(w, c, must(lock.New(c, w.Key, lock.Reentrant())))
}

// LockIn is Lock in a line of a described dialect.
func LockIn(d coord.Dialect) Use {
	return func(w *Worker, c *coord.Client) bool {
		return lockBy(w, c, must(lock.New(c, w.Key, lock.Reentrant(), lock.Dialect(d))))
	}
}

func lockBy(w *Worker, c *coord.Client, m *lock.Mutex) bool {
	switch how := w.Rand.Float64(); {
	case w.tries():
		return occupy(w, c, history.Exclusive, "TryAcquire", m.TryAcquire)
	case how < 0.15:
		return w.do(c, m)
	case how > 0.3:
		return occupy(w, c, history.Exclusive, "Acquire", m.Acquire)
	}
	g, ok := acquire(w, history.Exclusive, "Acquire", m.Acquire)
	if !ok {
		return false
	}
	inside := w.call()
	nested, err := m.Acquire(g.Hold.Context(inside.ctx))
	inside.end("nested Acquire", err, coord.ErrLost)
	if err == nil {
		stay(w, c, g)
		_ = nested.Release(context.Background())
	}
	stay(w, c, g)
	w.release("Acquire", g.Release)
	return true
}

// Crowd is workers that share one mutex for each client, with a local queue.
type Crowd struct {
	Opts []lock.Option

	mutexes perClient[*lock.Mutex]
}

// Lock locks the mutex.
func (r *Crowd) Lock(w *Worker, c *coord.Client) bool {
	m := r.mutexes.of(c, func() *lock.Mutex { return must(lock.New(c, w.Key, r.Opts...)) })
	if w.tries() {
		return occupy(w, c, history.Exclusive, "TryAcquire", m.TryAcquire)
	}
	return occupy(w, c, history.Exclusive, "Acquire", m.Acquire)
}

// do holds a mutex by the recipe's own function.
func (w *Worker) do(c *coord.Client, m *lock.Mutex) (held bool) {
	doing := w.call()
	op := w.Rec.Call(w.Name, w.Key, history.Exclusive)
	err := m.Do(doing.ctx, func(_ context.Context, h *coord.Hold) error {
		held = true
		doing.held()
		g := history.Granted(op, h)
		w.Granted(w, h)
		stay(w, c, g)
		given(g)
		return nil
	})
	if !held {
		op.End(history.Failed, err)
		doing.end("Do", err)
		return false
	}
	doing.ctx = context.Background() // Do's function runs on, also when the context has ended
	doing.end("Do", err, coord.ErrLost, coord.ErrUnconfirmed)
	return true
}

// Sit holds a mutex and reads all the time, and writes nothing: whether the
// hold is trusted depends on the window alone.
func Sit(w *Worker, c *coord.Client) bool {
	g, ok := acquire(w, history.Exclusive, "Acquire", must(lock.New(c, w.Key)).Acquire)
	if !ok {
		return false
	}
	stop := w.readAllTheTime(c, g.Hold)
	w.rest(w.hold(w.Rand), g.Hold)
	stop()
	w.release("Acquire", g.Release)
	return true
}

// Share uses one side of a read/write lock, or a mutex in the writers' place.
func Share(writes float64) Use {
	return func(w *Worker, c *coord.Client) bool {
		l := must(rwlock.New(c, w.Key))
		write, try := Chance(w.Rand, writes), w.tries()
		switch {
		case !write && try:
			return occupy(w, c, history.Shared, "TryAcquireRead", l.TryAcquireRead)
		case !write:
			return occupy(w, c, history.Shared, "AcquireRead", l.AcquireRead)
		case try:
			return occupy(w, c, history.Exclusive, "TryAcquireWrite", l.TryAcquireWrite)
		case Chance(w.Rand, 0.3):
			return occupy(w, c, history.Exclusive, "Acquire", must(lock.New(c, w.Key)).Acquire)
		}
		g, ok := acquire(w, history.Exclusive, "AcquireWrite", l.AcquireWrite)
		if !ok {
			return false
		}
		stay(w, c, g)
		if Chance(w.Rand, 0.7) {
			w.release("AcquireWrite", g.Release)
			return true
		}
		changing := w.call()
		read, err := downgrade(w, g, func() (*coord.Hold, error) { return rwlock.Downgrade(changing.ctx, g.Hold) })
		changing.end("Downgrade", err, coord.ErrLost)
		if err != nil {
			w.Count("downgrades that failed")
			return true
		}
		w.Count("downgrades")
		w.Granted(w, read.Hold)
		stay(w, c, read)
		w.release("Downgrade", read.Release)
		return true
	}
}

// downgrade turns a writer's grant into a reader's. On record the read hold
// begins before the call that makes it: a writer may read, and no other may
// write until the read hold ends. So a writer that gets in between is found.
func downgrade[H history.Holder](w *Worker, g *history.Grant[H], change func() (H, error)) (*history.Grant[H], error) {
	var read *history.Op
	var shared H
	err := g.End(history.Release, nil, func() (err error) {
		read = w.Rec.Call(w.Name, g.Of.Key, history.Shared)
		read.End(history.OK, nil)
		shared, err = change()
		return err
	})
	if err != nil {
		read.Lost(w.Rec.Begin(), err)
		return nil, err
	}
	return history.Watch(read, shared), nil
}

// Several locks a mutex and one side of a read/write lock, whose path comes
// after the mutex's, as one.
func Several(mutexKey, sharedKey string) Use {
	return func(w *Worker, c *coord.Client) bool {
		l := must(rwlock.New(c, sharedKey))
		side, kind := l.WriteSide(), history.Exclusive
		if Chance(w.Rand, 0.5) {
			side, kind = l.ReadSide(), history.Shared
		}
		m := must(lock.NewMulti(side, must(lock.New(c, mutexKey))))
		ops := []*history.Op{w.Rec.Call(w.Name, mutexKey, history.Exclusive), w.Rec.Call(w.Name, sharedKey, kind)}
		locking := w.call()
		group, err := m.Acquire(locking.ctx)
		locking.end("Acquire of several", err)
		if err != nil {
			ops[0].End(history.Failed, err)
			ops[1].End(history.Failed, err)
			return false
		}
		var grants []*history.Grant[*coord.Hold]
		for i, h := range group.Holds() { // in the order of their paths
			grants = append(grants, history.Granted(ops[i], h))
			w.Granted(w, h)
		}
		stay(w, c, grants[1])
		stay(w, c, grants[0])
		given(grants[0])
		given(grants[1])
		w.release("several locks", group.Release)
		return true
	}
}

// Lease takes one lease or several of a semaphore with a limit.
func Lease(limit int) Use {
	return func(w *Worker, c *coord.Client) bool {
		s := must(semaphore.New(c, w.Key, limit))
		n, what, f := 1+w.Rand.IntN(limit), "AcquireN", s.AcquireN
		if w.tries() {
			what, f = "TryAcquireN", s.TryAcquireN
		}
		return occupy(w, c, history.Lease, what, func(ctx context.Context) (*hold.Set, error) { return f(ctx, n) },
			history.Weight(n))
	}
}
