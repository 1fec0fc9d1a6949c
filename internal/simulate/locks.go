package simulate

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/history"
)

// must is for constructors that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// acquire records an acquisition.
func (k *worker) acquire(ctx context.Context, key string, kind history.Kind, what string, f func() (*coord.Hold, error)) (*history.Grant[*coord.Hold], bool) {
	g, err := history.Acquire(k.rec, k.name, key, kind, f)
	k.waited(ctx, what, err, coord.ErrBusy)
	if err == nil {
		k.granted(k.recipe, key)
	}
	return g, err == nil
}

// taken records a hold that was got by other means than a call of acquire. The
// driver may have ended it before there was a record to note that in.
func (k *worker) taken(key string, kind history.Kind, h *coord.Hold) *history.Grant[*coord.Hold] {
	k.granted(k.recipe, key)
	if k.excused(h.Node(), h.Session()) {
		key = "ended from outside"
	}
	g := must(history.Acquire(k.rec, k.name, key, kind, func() (*coord.Hold, error) { return h, nil }))
	if k.excused(h.Node(), h.Session()) {
		k.rec.Break(k.name, key, "ended from outside", time.Now(), k.timeout)
	}
	return g
}

// mutex locks a mutex in one of the ways there are.
func mutex(k *worker, ctx context.Context, c *coord.Client) bool {
	res := k.resources[k.key]
	m := must(lock.New(c, k.key, lock.Reentrant()))
	switch how := k.r.Float64(); {
	case how < 0.15 && !k.isCalm():
		g, ok := k.acquire(ctx, k.key, history.Exclusive, "TryAcquire", func() (*coord.Hold, error) { return m.TryAcquire(ctx) })
		if ok {
			k.use(c, g.Hold, res)
			k.release(g)
		}
		return ok
	case how < 0.3:
		done := false
		err := m.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
			done = true
			g := k.taken(k.key, history.Exclusive, h)
			k.use(c, h, res)
			return g.End(history.Release, nil, func() error { return nil })
		})
		k.waitedFor(ctx, "Do", err, done)
		return done
	}
	g, ok := k.acquire(ctx, k.key, history.Exclusive, "Acquire", func() (*coord.Hold, error) { return m.Acquire(ctx) })
	if !ok {
		return false
	}
	if chance(k.r, 0.1) {
		nested, err := m.Acquire(g.Hold.Context(ctx))
		k.waited(ctx, "nested Acquire", err, coord.ErrLost)
		if err == nil {
			k.use(c, nested, res)
			_ = nested.Release(ctx)
		}
	}
	k.use(c, g.Hold, res)
	k.release(g)
	return true
}

// sit holds a lock for long, reads all the time and writes nothing: whether it is
// trusted depends on the window alone.
func sit(k *worker, ctx context.Context, c *coord.Client) bool {
	m := must(lock.New(c, k.key))
	g, ok := k.acquire(ctx, k.key, history.Exclusive, "Acquire", func() (*coord.Hold, error) { return m.Acquire(ctx) })
	if !ok {
		return false
	}
	stop := k.readAllTheTime(c, g.Hold)
	k.rest(k.part(k.r, 2, 8), g.Hold)
	stop()
	k.called = time.Now()
	k.release(g)
	return true
}

// waitedFor is waited for calls that hold and release as well.
func (k *worker) waitedFor(ctx context.Context, what string, err error, held bool) {
	if held {
		k.untimed()
		k.waited(context.Background(), what, err, coord.ErrLost, coord.ErrUnconfirmed)
		return
	}
	k.waited(ctx, what, err)
}

// readersWriter uses one side of a read/write lock, or a mutex in its place.
func readersWriter(k *worker, ctx context.Context, c *coord.Client) bool {
	res := k.resources[k.key]
	l := must(rwlock.New(c, k.key))
	how := k.r.Float64()
	ways := []struct {
		share float64
		kind  history.Kind
		name  string
		f     func(context.Context) (*coord.Hold, error)
	}{
		{0.45, history.Shared, "AcquireRead", l.AcquireRead},
		{0.75, history.Exclusive, "AcquireWrite", l.AcquireWrite},
		{0.8, history.Shared, "TryAcquireRead", l.TryAcquireRead},
		{0.85, history.Exclusive, "TryAcquireWrite", l.TryAcquireWrite},
		{1, history.Exclusive, "Acquire", must(lock.New(c, k.key)).Acquire},
	}
	if k.isCalm() {
		how *= 0.75
	}
	for _, way := range ways {
		if how >= way.share {
			continue
		}
		g, ok := k.acquire(ctx, k.key, way.kind, way.name, func() (*coord.Hold, error) { return way.f(ctx) })
		if !ok {
			return false
		}
		k.use(c, g.Hold, res)
		if way.name == "AcquireWrite" && chance(k.r, 0.3) {
			k.downgrade(ctx, c, g)
			return true
		}
		k.release(g)
		return true
	}
	return false
}

// downgrade turns a write hold into a read hold and uses that.
func (k *worker) downgrade(ctx context.Context, c *coord.Client, g *history.Grant[*coord.Hold]) {
	var shared *coord.Hold
	err := g.End(history.Release, nil, func() (err error) {
		shared, err = g.Hold.Downgrade(ctx)
		return err
	})
	k.waited(ctx, "Downgrade", err, coord.ErrLost)
	if err != nil {
		return
	}
	k.count(k.counts, "downgrades", 1)
	read := k.taken(k.key, history.Shared, shared)
	k.use(c, shared, nil)
	k.release(read)
}

// several locks the mutex and one side of the read/write lock as one.
func several(mutexKey, rwKey string) func(k *worker, ctx context.Context, c *coord.Client) bool {
	return func(k *worker, ctx context.Context, c *coord.Client) bool {
		l := must(rwlock.New(c, rwKey))
		side, kind := l.WriteSide(), history.Exclusive
		if chance(k.r, 0.5) {
			side, kind = l.ReadSide(), history.Shared
		}
		m := must(lock.NewMulti(side, must(lock.New(c, mutexKey))))
		group, err := m.Acquire(ctx)
		k.waited(ctx, "Acquire of several", err)
		if err != nil {
			return false
		}
		holds := group.Holds() // in the order of their paths
		grants := []*history.Grant[*coord.Hold]{
			k.taken(mutexKey, history.Exclusive, holds[0]), k.taken(rwKey, kind, holds[1]),
		}
		k.use(c, holds[1], k.resources[rwKey])
		k.use(c, holds[0], k.resources[mutexKey])
		for _, g := range grants {
			_ = g.End(history.Release, nil, func() error { return nil })
		}
		ending, cancel := k.ending()
		defer cancel()
		k.released("several locks", func() error { return group.Release(ending) })
		return true
	}
}
